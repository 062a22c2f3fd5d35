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
          def watch = Constants.prepend_once("LaunchDarkly::LDClient", Watch)

          # In a child: starts the open ones. One that cannot start stops none of the others.
          #
          # @raise [StandardError] of the first that could not start
          def start
            deadline = now + WITHIN
            errors = open.filter_map { |client| failure(client, [deadline - now, 0].max) }
            raise errors.first if errors.any?
          end

          private

          # @return [StandardError, nil]
          def failure(client, seconds)
            client.postfork(seconds)
            nil
          rescue StandardError => e
            e
          end

          def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

          def open
            clients = ObjectSpace.each_object(LaunchDarkly::LDClient).to_a
            clients.reject { |client| client.instance_variable_get(:@pando_closed) }
          end
        end
      end
    end
  end
end
