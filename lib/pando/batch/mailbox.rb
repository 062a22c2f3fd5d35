# frozen_string_literal: true

require "pando/batch/deadline"

module Pando
  class Batch
    # A queue with a single reader and any number of writers. It pops with a timeout, which Thread::Queue can do only
    # from Ruby 3.2 on.
    #
    # @api private
    class Mailbox < Thread::Queue
      unless instance_method(:pop).parameters.include?(%i[key timeout])
        def initialize
          super
          @lock = Mutex.new
          @arrival = ConditionVariable.new
        end

        def push(letter)
          @lock.synchronize do
            super
            @arrival.signal
          end
        end
        alias << push

        # @param timeout [Numeric, nil] seconds
        # @return [Object, nil] nil: nothing came in time
        def pop(timeout: nil)
          return super() unless timeout

          deadline = Deadline.in(timeout)
          @lock.synchronize do
            while empty?
              left = deadline.left
              return unless left.positive?

              @arrival.wait(@lock, left)
            end
            super(true)
          end
        end
      end
    end
  end
end
