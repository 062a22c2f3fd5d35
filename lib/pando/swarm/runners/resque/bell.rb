# frozen_string_literal: true

module Pando
  module Swarm
    module Runners
      class Resque
        # Lets a thread sleep until something is readable or another thread rings. Owned by a {Desk}.
        #
        # @api private
        class Bell
          def initialize
            @ear, @mouth = IO.pipe
          end

          # Wakes the sleeping thread, or the next one that wants to sleep.
          def ring
            @mouth.write_nonblock(".")
          rescue IOError, Errno::EAGAIN
            nil # it rings already, or it is closed
          end

          # @param seconds [Numeric] at most
          # @param ios [Array<#to_io>]
          # @return [#to_io, nil] an IO that is readable
          def nap(seconds, *ios)
            ready, = IO.select([@ear, *ios], nil, nil, seconds)
            return unless ready

            @ear.read_nonblock(64) if ready.delete(@ear)
            ready.first
          end

          def close
            [@ear, @mouth].each(&:close)
          end
        end
      end
    end
  end
end
