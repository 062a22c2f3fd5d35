# frozen_string_literal: true

require "pando/batch/lanes"
require "pando/batch/mailbox"

module Pando
  class Batch
    # Counters that can be read without a lock.
    #
    # @api private
    Tally = Struct.new(:attempts, :done, :failed) do
      def initialize = super(0, 0, 0)
    end

    # Which jobs are open, in what order they may run, and which callers wait until none is. One lock protects all of
    # it, each time for a moment only.
    #
    # @api private
    class Ledger
      def initialize(tally)
        @tally = tally
        @lock = Mutex.new
        @open = {}.compare_by_identity
        @lanes = Lanes.new
        @idle = []
        @active = 0
        @closed = false
      end

      # @return [Boolean] whether a lane is being worked on or could be
      def active? = @active.positive?

      # @return [Boolean] whether all open jobs wait for another attempt
      def resting? = @lock.synchronize { !@open.empty? && !active? }

      # @return [Array<Job>, nil] a lane that a thread can work on now
      # @raise [Closed]
      def admit(job)
        @lock.synchronize do
          raise Closed if @closed

          @open[job] = true
          @lanes.add(job).tap { |lane| @active += 1 if lane }
        end
      end

      # An attempt has ended. The job stays open, and its lane waits for the next attempt.
      def put_off
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
          next unless @open.delete(job)

          count(job, state)
          announce_idle if @open.empty?
          @lanes.advance(lane).tap { |rest| @active -= 1 unless rest }
        end
      end

      # These jobs need not be done any more, unless they are already.
      #
      # @return [Boolean] whether some of them were still open
      def withdraw(jobs) = @lock.synchronize { jobs.each(&:withdraw).any? { |job| @open.key?(job) } }

      # @return [Boolean] false: the time was over before that
      def wait(deadline)
        mailbox = Mailbox.new
        @lock.synchronize do
          return true if @open.empty?

          @idle << mailbox
        end
        mailbox.pop(timeout: deadline.left) || false
      ensure
        @lock.synchronize { @idle.delete(mailbox) }
      end

      # Admits no job any more.
      def close = @lock.synchronize { @closed = true }

      # @return [Array<Job>] jobs that are still open; their state no longer changes
      def clear
        @lock.synchronize do
          jobs = @open.each_key(&:withdraw).keys
          @open.clear
          @active = 0
          announce_idle
          jobs
        end
      end

      private

      def count(job, state)
        @tally.attempts += 1
        @tally.done += 1 if state == :done
        @tally.failed += 1 if job.error && !job.withdrawn?
        job.state = state unless job.withdrawn?
      end

      def announce_idle
        @idle.each { |mailbox| mailbox << true }
        @idle.clear
      end
    end
  end
end
