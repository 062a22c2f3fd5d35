# frozen_string_literal: true

module Pando
  module Swarm
    module Runners
      class Resque
        # Lets a thread sleep until something is readable, or it is rung by another thread. Owned by a {Desk}.
        #
        # @api private
        class Bell
          def initialize
            @ear, @mouth = IO.pipe
          end

          # Wakes who sleeps, or the next one who wants to.
          def ring
            @mouth.write_nonblock(".")
          rescue IOError, Errno::EAGAIN
            nil # it rings already, or nobody is there any more
          end

          # @param seconds [Numeric] at most
          # @param ios [Array<#to_io>]
          # @return [#to_io, nil] one that is readable
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
