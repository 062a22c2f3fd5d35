# frozen_string_literal: true

module Pando
  module Swarm
    module Runners
      class Resque
        # Lets a thread sleep until something is readable or another thread wakes it. Owned by the runner, in a node.
        #
        # @api private
        class Wakeup
          def initialize
            @reader, @writer = IO.pipe
          end

          # Wakes the sleeping thread, or the next one that wants to sleep.
          def signal
            @writer.write_nonblock(".")
          rescue IOError, Errno::EAGAIN
            nil # a signal is pending already, or it is closed
          end

          # @param seconds [Numeric] at most
          # @param ios [Array<#to_io>]
          # @return [#to_io, nil] an IO that is readable
          def wait(seconds, *ios)
            ready, = IO.select([@reader, *ios], nil, nil, seconds)
            return unless ready

            @reader.read_nonblock(64) if ready.delete(@reader)
            ready.first
          end

          def close
            [@reader, @writer].each(&:close)
          end
        end
      end
    end
  end
end
