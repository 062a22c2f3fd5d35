# frozen_string_literal: true

module Pando
  module Cluster
    class Upgrade
      # Buffers the signals that come while the process is not a monitor: from the moment in which one image of it is
      # executed until that image has taken up its duties, and obeys them then. exe/pando loads this first, so it
      # requires nothing. A signal that comes while the bare Ruby starts, for some hundredths of a second, is ignored:
      # Ruby lifts a mask that would keep it waiting in the kernel.
      module SignalBuffer
        NAMES = %w[TERM QUIT INT USR1 USR2 TTIN TTOU HUP TSTP].freeze
        # In the environment: those that had come before.
        VARIABLE = "PANDO_UPGRADE_SIGNALS"

        @received = []

        class << self
          # In the new image, as early as can be.
          def begin(environment = ENV)
            return unless (names = environment.delete(VARIABLE))

            @received = NAMES & names.split(",")
            NAMES.each { |name| trap(name) { @received |= [name] } }
          end

          # The monitor has handlers of its own from now on.
          def take
            @received.tap { @received = [] }
          end

          # Another image is to be executed, which these signals would end.
          # @return [Hash{String => String}] environment for it
          def pass_on(names)
            NAMES.each { |name| trap(name, "IGNORE") }
            { VARIABLE => (take | names).join(",") }
          end
        end
      end
    end
  end
end
