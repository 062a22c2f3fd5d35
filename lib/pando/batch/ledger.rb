# frozen_string_literal: true

require "pando/batch/lanes"
require "pando/batch/mailbox"

module Pando
  class Batch
    # Counters that are read without a lock.
    #
    # @api private
    Tally = Struct.new(:attempts, :done, :failed) do
      def initialize = super(0, 0, 0)
    end

    # Which jobs are open, in what order they may be done, who waits until there are none. All of it under one lock,
    # held for a moment.
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

      # @return [Boolean] whether there is a lane that can be worked on now, or is
      def active? = @active.positive?

      # @return [Boolean] whether all that is open waits for another attempt
      def resting? = @lock.synchronize { !@open.empty? && !active? }

      # @return [Array<Job>, nil] a lane that can be worked on now
      # @raise [Closed]
      def admit(job)
        @lock.synchronize do
          raise Closed if @closed

          @open[job] = true
          @lanes.add(job).tap { |lane| @active += 1 if lane }
        end
      end

      # An attempt has ended; the job stays open, and its lane waits for the next one.
      def put_off
        @lock.synchronize do
          @tally.attempts += 1
          @active -= 1
        end
      end

      # The wait is over.
      def resume = @lock.synchronize { @active += 1 }

      # @param state [Symbol] that the lane's first job has come to
      # @return [Array<Job>, nil] the lane, if it goes on
      def settle(lane, state)
        @lock.synchronize do
          job = lane.first
          next unless @open.delete(job)

          count(job, state)
          announce_idle if @open.empty?
          @lanes.advance(lane).tap { |rest| @active -= 1 unless rest }
        end
      end

      # They need not be done any more, if they are not yet.
      #
      # @return [Boolean] whether some were still open
      def withdraw(jobs) = @lock.synchronize { jobs.each(&:withdraw).any? { |job| @open.key?(job) } }

      # @return [Boolean] false: not in time
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

      # Admits nothing any more.
      def close = @lock.synchronize { @closed = true }

      # @return [Array<Job>] what is still open, and will stay as it is
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
