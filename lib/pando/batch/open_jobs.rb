# frozen_string_literal: true

require "pando/batch/waiting"

module Pando
  class Batch
    # Counters that can be read without a lock. A Batch has one for its whole life.
    #
    # @api private
    Tally = Struct.new(:attempts, :done, :failed) do
      def initialize = super(0, 0, 0)
    end

    # Which jobs are open, in what order they may run, and which callers wait until none is. One lock protects all of
    # it, each time for a moment only. Owned by the Executor.
    #
    # Jobs run in lanes. A lane has the jobs of one key, and only its first job may run. A job without a key has a lane
    # of its own. A lane is in exactly one place: in the queue, in a thread, or waiting for a retry.
    #
    # @api private
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

      # @return [Boolean] whether a lane is being worked on or could be
      def active? = @active.positive?

      # @return [Boolean] whether all open jobs wait for another attempt
      def only_retries? = @lock.synchronize { !@jobs.empty? && !active? }

      # @return [Array<Job>, nil] a lane that a thread can work on now
      # @raise [Closed]
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
  end
end
