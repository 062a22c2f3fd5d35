# frozen_string_literal: true

require "pando/batch/deadline"
require "pando/batch/job"
require "pando/batch/mailbox"
require "pando/batch/result"

module Pando
  class Batch
    # One call of Batch#run, in the caller's thread. It counts the jobs that it has handed over, and so knows how often
    # to pop.
    #
    # @api private
    class Run
      def initialize(shift, items, key, work)
        @shift = shift
        @ended = Mailbox.new
        @jobs = items.map { |item| Job.new(item, key&.call(item), work, @ended) }
      end

      # @return [Result]
      def call(timeout)
        wait(Deadline.in(timeout))
        Result.new(@jobs)
      end

      private

      # However this method is left, the states of the jobs are final then.
      def wait(deadline)
        hand_over(deadline).times { break unless @ended.pop(timeout: deadline.left) }
      ensure
        @shift.withdraw(@jobs)
      end

      # @return [Integer] jobs handed over: all, unless there was no room in time or the batch was stopped
      def hand_over(deadline)
        count = 0
        @jobs.each { |job| @shift.push(job, deadline) ? count += 1 : break }
        count
      rescue Closed
        count
      end
    end
  end
end
