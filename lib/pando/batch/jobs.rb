# frozen_string_literal: true

require "pando/batch/threads"

module Pando
  class Batch
    # One item on its way through the batch: the work to do, and its outcome. Only one thread at a time works on it. Its
    # state belongs to OpenJobs.
    class Job
      attr_reader :item, :key, :value, :error, :attempts
      # :done, :failed, or :unfinished until it is one of these
      attr_accessor :state

      # @param done [TimedQueue, nil] gets the job when it has ended; nil: no caller waits for it
      def initialize(item, key, work, done = nil)
        @item = item
        @key = key
        @work = work
        @done = done
        @attempts = 0
        @state = :unfinished
        @answered = @withdrawn = @dead_letter_begun = false
      end

      # Whether the last attempt has an outcome. A thread may be killed after the attempt and before it has dealt with
      # the error.
      def answered? = @answered

      # No caller waits for it any more: it need not be done.
      def withdrawn? = @withdrawn

      def withdraw
        @withdrawn = true
      end

      # Rescues everything. If the thread is killed, the job gets an error for that, too.
      def attempt
        @attempts += 1
        @value = ForkGuard.call { Thread.handle_interrupt(Object => :immediate) { @work.call(@item) } }
        answer(nil)
      rescue Exception => e # rubocop:disable Lint/RescueException
        answer(e)
      ensure
        answer(killed) unless answered?
      end

      def prepare_retry
        @answered = false
      end

      # @return [Boolean] true once; false: the thread was killed in the middle of its dead letter
      def begin_dead_letter = !@dead_letter_begun && (@dead_letter_begun = true)

      # The waiting caller gets the error. If there is none, it goes to stderr.
      def report_error
        ErrorLog.write("an item failed, and there is no dead_letter:", @error) unless @done
        true
      end

      def finish = @done&.push(self)

      private

      # The stack of the killed thread is gone, so the backtrace is the block's place.
      def killed
        ThreadKilled.new.tap { |error| error.set_backtrace([@work.source_location&.join(":")].compact) }
      end

      def answer(error)
        @error = error
        @answered = true
      end
    end

    # Counters that can be read without a lock. A Batch has one for its whole life.
    Tally = Struct.new(:attempts, :done, :failed) do
      def initialize = super(0, 0, 0)
    end

    # Which jobs are open, in what order they may run, and which callers wait until none is. One lock protects all of
    # it, each time for a moment only. Owned by the Executor.
    #
    # Jobs run in lanes. A lane has the jobs of one key, and only its first job may run. A job without a key has a lane
    # of its own. A lane is in exactly one place: in the queue, in a thread, or waiting for a retry.
    class OpenJobs
      def initialize(tally)
        @tally = tally
        @lock = Mutex.new
        @jobs = {}.compare_by_identity
        @lanes = {} # key => Array<Job>
        @waiting = [] # a TimedQueue for each caller of #wait
        @active = 0
        @closed = false
      end

      def active? = @active.positive?

      def only_retries? = @lock.synchronize { !@jobs.empty? && !active? }

      # @return [Array<Job>, nil] a lane that a thread can work on now
      def add(job)
        @lock.synchronize do
          raise Closed if @closed

          @jobs[job] = true
          new_lane(job).tap { |lane| @active += 1 if lane }
        end
      end

      # An attempt has ended. The job stays open, and its lane waits for the next attempt.
      def retry_later
        @lock.synchronize do
          @tally.attempts += 1
          @active -= 1
        end
      end

      # The lane's wait for its next attempt is over.
      def resume = @lock.synchronize { @active += 1 }

      # @param state [Symbol] the outcome of the lane's first job
      # @return [Array<Job>, nil] the lane, if it has further jobs
      def settle(lane, state)
        @lock.synchronize do
          job = lane.first
          next unless @jobs.delete(job)

          count(job, state)
          announce_idle if @jobs.empty?
          advance(lane).tap { |rest| @active -= 1 unless rest }
        end
      end

      # These jobs need not be done any more, unless they are already.
      #
      # @return [Boolean] whether some of them were still open
      def withdraw(jobs) = @lock.synchronize { jobs.each(&:withdraw).any? { |job| @jobs.key?(job) } }

      # Waits until no job is open.
      #
      # @return [Boolean] false: the time was over before that
      def wait(deadline)
        idle = TimedQueue.new
        @lock.synchronize do
          return true if @jobs.empty?

          @waiting << idle
        end
        idle.pop(timeout: deadline.left) || false
      ensure
        @lock.synchronize { @waiting.delete(idle) }
      end

      # Admits no job any more.
      def close = @lock.synchronize { @closed = true }

      # @return [Array<Job>] jobs that are still open; their state no longer changes
      def clear
        @lock.synchronize do
          jobs = @jobs.each_key(&:withdraw).keys
          @jobs.clear
          @active = 0
          announce_idle
          jobs
        end
      end

      private

      # @return [Array<Job>, nil] the job's lane, if it is new and so in no place yet
      def new_lane(job)
        return [job] if job.key.nil?

        lane = @lanes[job.key]
        return @lanes[job.key] = [job] unless lane

        lane << job
        nil
      end

      # Removes the lane's first job, which has ended.
      #
      # @return [Array<Job>, nil] the lane, if it has further jobs
      def advance(lane)
        job = lane.shift
        return lane unless lane.empty?

        @lanes.delete(job.key)
        nil
      end

      def count(job, state)
        @tally.attempts += 1
        @tally.done += 1 if state == :done
        @tally.failed += 1 if job.error && !job.withdrawn?
        job.state = state unless job.withdrawn?
      end

      def announce_idle
        @waiting.each { |idle| idle << true }
        @waiting.clear
      end
    end

    # An item that has used up its attempts.
    Failure = Struct.new(:item, :error, :attempts)

    # The outcome of the items of one Batch#run. Each list is in the order of the items.
    class Result
      # @api private
      def initialize(jobs)
        @jobs = jobs
      end

      # @return [Array<Object>] the items that were done
      def done = of(:done).map(&:item)

      # @return [Array<Object>] what the block returned, for each of {#done}
      def values = of(:done).map(&:value)

      # @return [Array<Failure>] items that have used up their attempts, and whose dead letter, if any, has been written
      def failed = of(:failed).map { |job| Failure.new(job.item, job.error, job.attempts) }

      # @return [Array<Object>] items that the broker should deliver again: a timeout or a stop came before they were
      #   done, or their dead letter failed
      def unfinished = of(:unfinished).map(&:item)

      # @return [Boolean] whether all items were done
      def success? = @jobs.all? { |job| job.state == :done }

      # @return [Boolean] whether no item is unfinished
      def complete? = @jobs.none? { |job| job.state == :unfinished }

      def inspect
        "#<#{self.class} #{%i[done failed unfinished].map { |state| "#{of(state).size} #{state}" }.join(", ")}>"
      end

      private

      def of(state) = @jobs.select { |job| job.state == state }
    end
  end
end
