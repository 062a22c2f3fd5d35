# frozen_string_literal: true

require "pando/fork_safety/libraries/constants"

module Pando
  module ForkSafety
    module Libraries
      # The clients of LaunchDarkly in this process. In a child, Pando starts each again with its own `postfork`, except
      # those that were closed: `postfork` would open them. A client does not tell whether it is closed, so this module
      # notices its #close.
      #
      # Lives in molds and workers.
      module LaunchDarklyClients
        # Seconds that all clients of a process have to fetch their flags; the default of one client.
        WITHIN = 5.0

        # Notices closed clients.
        module Watch
          def close
            super
          ensure
            @pando_closed = true
          end

          def postfork(...)
            @pando_closed = false
            super
          end
        end

        class << self
          # From now on, notices each client that is closed.
          def watch
            owner = Constants.find("LaunchDarkly::LDClient")
            owner.prepend(Watch) if owner && !owner.include?(Watch)
            nil
          end

          # In a child: starts the open ones.
          def start
            deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + WITHIN
            open.each { |client| client.postfork([deadline - Process.clock_gettime(Process::CLOCK_MONOTONIC), 0].max) }
          end

          private

          def open
            clients = ObjectSpace.each_object(LaunchDarkly::LDClient).to_a
            clients.reject { |client| client.instance_variable_get(:@pando_closed) }
          end
        end
      end
    end
  end
end
