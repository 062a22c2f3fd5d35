# frozen_string_literal: true

require "pando/batch/jobs"
require "pando/batch/threads"

module Pando
  class Batch
    # Decides whether an item is retried, and after how long. The pause is random, so that items that failed together
    # are not retried together.
    class Retries
      BACKOFF = (0.5..30)
      # After so many doublings, any maximum is reached.
      DOUBLINGS = 30

      def initialize(attempts, backoff, errors)
        Arguments.count(:attempts, attempts)
        Arguments.errors(Array(errors))
        unless backoff.respond_to?(:call) || seconds?(backoff)
          raise ArgumentError, "backoff: must be a Range of seconds, or something to call"
        end

        @attempts = attempts
        @backoff = backoff
        @errors = Array(errors)
      end

      # @return [Float, nil] seconds until the next attempt; nil: there is none
      def delay(job)
        return if job.attempts >= @attempts || @errors.none? { |pattern| matches?(pattern, job.error) }

        [Float(@backoff.respond_to?(:call) ? @backoff.call(job.attempts) : doubled(job.attempts)), 0.0].max
      rescue StandardError => e
        ErrorLog.write("an item is not retried, because retry_on or backoff raised", e)
      end

      private

      def matches?(pattern, error) = pattern.respond_to?(:call) ? pattern.call(error) : error.is_a?(pattern)

      def doubled(attempts)
        longest = [@backoff.begin * (2**[attempts - 1, DOUBLINGS].min), @backoff.end].min
        longest * (1 - (rand / 2))
      end

      def seconds?(range)
        range.is_a?(Range) && range.begin.is_a?(Numeric) && range.end.is_a?(Numeric) && !range.begin.negative? &&
          range.begin <= range.end
      end
    end

    # Starts the next attempts when their time has come, in a thread of its own, which starts with the first retry.
    # Owned by the Executor.
    class RetryTimer
      # A lane whose first job waits for its next attempt.
      Entry = Struct.new(:time, :lane) do
        def cancelled? = lane.first.withdrawn?
      end
      STOP = :stop
      RECHECK = :recheck

      # @yieldparam lane [Array<Job>] whose wait is over; the block raises nothing
      def initialize(name, &resume)
        @resume = resume
        @inbox = TimedQueue.new
        @entries = [] # by time; only the thread uses it
        @thread = ThreadPool.new(1, name) { run }
      end

      def after(seconds, lane)
        @thread.start
        @inbox << Entry.new(Deadline.now + seconds, lane)
      end

      # Resumes the lanes whose job has been withdrawn since, without further wait.
      def recheck
        @inbox << RECHECK unless @thread.empty?
      end

      # Lanes that still wait are dropped.
      def stop(deadline)
        @inbox << STOP
        @thread.stop(deadline)
      end

      private

      def run
        until (message = receive) == STOP
          case message
          when Entry then insert(message)
          when RECHECK then drop_cancelled
          else run_due
          end
        end
      end

      # nil: the first entry is due.
      def receive
        seconds = @entries.empty? ? nil : [@entries.first.time - Deadline.now, 0.0].max
        Thread.handle_interrupt(Object => :on_blocking) { @inbox.pop(timeout: seconds) }
      end

      def insert(entry)
        return @resume.call(entry.lane) if entry.cancelled?

        @entries.insert(@entries.bsearch_index { |other| other.time > entry.time } || -1, entry)
      end

      def drop_cancelled
        cancelled, @entries = @entries.partition(&:cancelled?)
        cancelled.each { |entry| @resume.call(entry.lane) }
      end

      def run_due
        now = Deadline.now
        @resume.call(@entries.shift.lane) while @entries.first && @entries.first.time <= now
      end
    end

    # All that lives from a start to a stop: the threads, the queue that feeds them, the open jobs. Batch makes it in
    # the process that uses it; a forked child has another one.
    #
    # A job goes from the queue to a thread, and from there to its end, or to the timer for its next attempt. The
    # threads hold interrupts off except in the user's code and while they wait for work. So a kill finds each job in
    # exactly one place.
    class Executor
      # The options of a Batch.
      Options = Struct.new(:name, :threads, :capacity, :retries, :dead_letter)

      def initialize(options, tally)
        @options = options
        @queue = Thread::Queue.new # of lanes
        @permits = Semaphore.new(options.capacity)
        @open_jobs = OpenJobs.new(tally)
        @retry_timer = RetryTimer.new("#{options.name} clock") do |lane|
          @open_jobs.resume
          enqueue(lane)
        end
        @threads = ThreadPool.new(options.threads, options.name) { work }
      end

      def start
        @threads.start
        self
      end

      # @param deadline [Deadline] for room
      # @return [Boolean] false: there was no room in time, and the job was not taken
      # @raise [Closed, Full]
      def push(job, deadline)
        Thread.handle_interrupt(Object => :never) do
          next false unless room?(deadline)

          enqueue(@open_jobs.add(job))
          true
        end
      end

      # Runs the jobs of one Batch#run, in its caller's thread. However it is left, the states are final then.
      #
      # @param ended [TimedQueue] gets each job that has ended
      def run(jobs, ended, deadline)
        hand_over(jobs, deadline).times { break unless ended.pop(timeout: deadline.left) }
      ensure
        # Those that wait for another attempt must not hold up their keys.
        @retry_timer.recheck if @open_jobs.withdraw(jobs)
      end

      def wait(deadline) = @open_jobs.wait(deadline)

      def stop(seconds)
        deadline = Deadline.in(seconds)
        close
        resisting = @threads.stop(deadline) + @retry_timer.stop(Deadline.in(ThreadPool::KILL))
        resisting.each { |one| ErrorLog.write("a thread is alive:", ThreadError.new("#{one} resists Thread#kill")) }
        @open_jobs.clear.each(&:finish).map(&:item)
      end

      def member? = @threads.member?
      def busy? = @open_jobs.active?
      def only_retries? = @open_jobs.only_retries?
      def in_progress = [@threads.size - @queue.num_waiting, 0].max
      def trouble = @threads.short? ? "#{@threads.size} of #{@options.threads} threads are left" : nil

      private

      # @return [Integer] jobs handed over: all, unless there was no room in time or the batch was stopped
      def hand_over(jobs, deadline)
        count = 0
        jobs.each { |job| push(job, deadline) ? count += 1 : break }
        count
      rescue Closed
        count
      end

      def room?(deadline)
        own = member?
        return true if @permits.acquire(own ? Deadline.in(0) : deadline)
        raise Closed if @closed
        raise Full if own

        false
      end

      # No job begins from here on.
      def close
        @closed = true
        @open_jobs.close
        @permits.close
        @queue.clear
        @queue.close
      end

      def enqueue(lane)
        @queue << lane if lane
      rescue ClosedQueueError
        nil # the job stays open, so the stop gives it back
      end

      # What each thread runs.
      def work
        while (lane = next_lane)
          process(lane)
        end
      end

      # A thread that is to be killed is killed before it takes a lane.
      def next_lane
        Thread.handle_interrupt(Object => :immediate) { nil } if Thread.pending_interrupt?
        Thread.handle_interrupt(Object => :on_blocking) { @queue.pop }
      end

      # If the thread is killed, its replacement goes on with the job.
      def process(lane)
        job = lane.first
        job.attempt unless job.withdrawn? || job.answered?
        conclude(lane, job)
        concluded = true
      ensure
        enqueue(lane) unless concluded
      end

      def conclude(lane, job)
        if job.withdrawn? then settle(lane, job, :unfinished)
        elsif !job.error then settle(lane, job, :done)
        elsif (seconds = @options.retries.delay(job)) then retry_later(lane, job, seconds)
        else settle(lane, job, dead_letter(job) ? :failed : :unfinished)
        end
      end

      def settle(lane, job, state)
        enqueue(@open_jobs.settle(lane, state))
        @permits.release
        job.finish
      end

      def retry_later(lane, job, seconds)
        job.prepare_retry
        @retry_timer.after(seconds, lane)
        @open_jobs.retry_later
      end

      # @return [Boolean] whether the failure has been reported
      def dead_letter(job)
        raise ThreadKilled, "the thread was killed in the middle of its dead letter" unless job.begin_dead_letter
        return job.report_error unless @options.dead_letter

        ForkGuard.call do
          Thread.handle_interrupt(Object => :immediate) { @options.dead_letter.call(job.item, job.error) }
        end
        true
      rescue Exception => e # rubocop:disable Lint/RescueException
        ErrorLog.write("an item failed:", job.error)
        ErrorLog.write("and its dead letter failed too:", e)
        false
      end
    end
  end
end
