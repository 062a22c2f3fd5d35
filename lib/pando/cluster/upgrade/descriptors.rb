# frozen_string_literal: true

require "socket"
require "pando/cluster/upgrade/record"

module Pando
  module Cluster
    class Upgrade
      # The descriptors that an image of the monitor has left to this one: open under the numbers that its state
      # names, and none closes at an exec.
      #
      # @api private
      class Descriptors
        # Sets whether these are closed at an exec.
        #
        # @param numbers [Array<Integer>]
        # @raise [SystemCallError] one is not open
        def self.close_on_exec(numbers, value)
          numbers.each { |number| Sys.borrow(number) { |io| io.close_on_exec = value } }
        end

        # @param numbers [Array<Integer>] of all
        def expect(numbers)
          @left = numbers
        end

        # @return [Integer] the same number
        def take(number)
          raise Unreadable, "descriptor #{number} was not passed on, or is taken twice" unless @left.delete(number)

          Descriptors.close_on_exec([number], true)
          number
        rescue SystemCallError => e
          raise Unreadable, "descriptor #{number}: #{e.message}"
        end

        def close_rest
          @left.each { |number| Sys.close_fd(number) }
        end
      end

      # In the process that only tries whether it could take over: a few are real, the others are sockets of its
      # own that nobody writes to.
      #
      # @api private
      class StandIns
        # @return [Hash{Integer => Integer}] number there => number here
        attr_reader :real

        def initialize
          @real = {}
          @dummy, @other_end = UNIXSocket.pair
        end

        def expect(numbers)
          @left = numbers.dup
        end

        def take(number)
          raise Unreadable, "descriptor #{number} is named twice" unless @left.delete(number)

          @real.fetch(number) { Sys.disown(@dummy.dup) }
        end

        def close_rest; end
      end
    end
  end
end
