# frozen_string_literal: true

require "pando/batch/clock"
require "pando/batch/crew"
require "pando/batch/deadline"
require "pando/batch/job"
require "pando/batch/ledger"
require "pando/batch/room"

module Pando
  class Batch
    # All that lives from a start to a stop: the threads, the queue that feeds them, the open jobs. Batch makes it in
    # the process that uses it; a forked child has another one.
    #
    # A job goes from the queue to a thread, and from there to its end, or it is put off for its next attempt. The
    # threads hold interrupts off except in the user's code and while they wait for work. So a kill finds each job in
    # exactly one place.
    #
    # @api private
    class Shift
      # The options of a Batch.
      Terms = Struct.new(:name, :threads, :capacity, :retries, :dead_letter)

      def initialize(terms, tally)
        @terms = terms
        @queue = Thread::Queue.new # of lanes
        @room = Room.new(terms.capacity)
        @ledger = Ledger.new(tally)
        @clock = Clock.new("#{terms.name} clock")
        @crew = Crew.new(terms.threads, terms.name) { serve }
      end

      def start
        @crew.start
        self
      end

      # @param deadline [Deadline] for room
      # @return [Boolean] false: there was no room in time, and the job was not taken
      # @raise [Closed, Full]
      def push(job, deadline)
        Thread.handle_interrupt(Object => :never) do
          next false unless room?(deadline)

          enqueue(@ledger.admit(job))
          true
        end
      end

      # No caller waits for these jobs any more. Those that wait for another attempt must not hold up their keys.
      def withdraw(jobs)
        @clock.review if @ledger.withdraw(jobs)
      end

      def wait(deadline) = @ledger.wait(deadline)

      # @return [Array<Object>] the unfinished items
      def stop(seconds)
        deadline = Deadline.in(seconds)
        close
        resisting = @crew.stop(deadline) + @clock.stop(Deadline.in(Crew::KILL))
        resisting.each { |one| Complaint.make("a thread is alive:", ThreadError.new("#{one} resists Thread#kill")) }
        @ledger.clear.each(&:report).map(&:item)
      end

      def member? = @crew.member?
      def busy? = @ledger.active?
      def resting? = @ledger.resting?
      def in_progress = [@crew.size - @queue.num_waiting, 0].max
      def trouble = @crew.short? ? "#{@crew.size} of #{@terms.threads} threads are left" : nil

      private

      def room?(deadline)
        own = member?
        return true if @room.take(own ? Deadline.in(0) : deadline)
        raise Closed if @closed
        raise Full if own

        false
      end

      # No job begins from here on.
      def close
        @closed = true
        @ledger.close
        @room.close
        @queue.clear
        @queue.close
      end

      def enqueue(lane)
        @queue << lane if lane
      rescue ClosedQueueError
        nil # the job stays open, so the stop gives it back
      end

      # The body of a crew's thread.
      def serve
        while (lane = next_lane)
          attend(lane)
        end
      end

      # A thread that is to be killed is killed before it takes a lane.
      def next_lane
        Thread.handle_interrupt(Object => :immediate) { nil } if Thread.pending_interrupt?
        Thread.handle_interrupt(Object => :on_blocking) { @queue.pop }
      end

      # If the thread is killed, its replacement goes on with the job.
      def attend(lane)
        job = lane.first
        job.attempt unless job.withdrawn? || job.answered?
        conclude(lane, job)
        seen_to = true
      ensure
        enqueue(lane) unless seen_to
      end

      def conclude(lane, job)
        if job.withdrawn? then settle(lane, job, :unfinished)
        elsif !job.error then settle(lane, job, :done)
        elsif (seconds = @terms.retries.delay(job)) then put_off(lane, job, seconds)
        else settle(lane, job, bury(job) ? :failed : :unfinished)
        end
      end

      def settle(lane, job, state)
        enqueue(@ledger.settle(lane, state))
        @room.give
        job.report
      end

      def put_off(lane, job, seconds)
        job.renew
        @clock.after(seconds, job.method(:withdrawn?)) do
          @ledger.resume
          enqueue(lane)
        end
        @ledger.put_off
      end

      # @return [Boolean] whether the failure has been reported
      def bury(job)
        raise ThreadKilled, "the thread was killed in the middle of its dead letter" unless job.bury!
        return job.tell unless @terms.dead_letter

        Thread.handle_interrupt(Object => :immediate) { @terms.dead_letter.call(job.item, job.error) }
        true
      rescue Exception => e # rubocop:disable Lint/RescueException
        Complaint.make("an item failed:", job.error)
        Complaint.make("and its dead letter failed too:", e)
        false
      end
    end
  end
end
