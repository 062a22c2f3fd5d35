# frozen_string_literal: true

module Pando
  module Cluster
    class Upgrade
      # The signals that come while the process is no monitor: from the moment in which one image of it is executed
      # until that one has taken up its duties. They are remembered, and obeyed then. exe/pando loads this first,
      # so it requires nothing. What comes while the bare Ruby starts, for some hundredths of a second, cannot be
      # remembered by anybody: Ruby lifts a mask that would keep it waiting in the kernel. It is ignored.
      #
      # @api private
      module SignalBuffer
        NAMES = %w[TERM QUIT INT USR2 TTIN TTOU HUP TSTP].freeze
        # In the environment: those that had come before.
        VARIABLE = "PANDO_UPGRADE_SIGNALS"

        @come = []

        class << self
          # In the new image, as early as can be.
          def begin(environment = ENV)
            return unless (names = environment.delete(VARIABLE))

            @come = NAMES & names.split(",")
            NAMES.each { |name| trap(name) { @come |= [name] } }
          end

          # The monitor has handlers of its own.
          # @return [Array<String>] names
          def take
            @come.tap { @come = [] }
          end

          # Another image is to be executed, which would end by them.
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
