# frozen_string_literal: true

module Pando
  module Swarm
    # Threads that wait for items and work at one each. Whoever gives items sees to it that they do not become too many
    # (a broker's prefetch, for instance). Owned by a runner, in a node.
    #
    # An item is either among those that wait or among those in progress, at any moment: {#busy?} is never false between
    # the two.
    #
    # @api private
    class Crew
      # @param size [Integer] threads @param name [String] theirs, with a number after it
      # @yieldparam item [Object]
      # @yieldreturn [Boolean] false: the item has failed. What it raises counts as that too, and is gone
      def initialize(size, name, &work)
        @work = work
        @lock = Mutex.new
        @news = ConditionVariable.new
        @waiting = []
        @quiet = @ended = false
        @in_progress = @done = @failed = 0
        @threads = Array.new(size) { |number| Thread.new { run }.tap { |one| one.name = "#{name} #{number}" } }
      end

      # @return [Integer] items that are worked at
      attr_reader :in_progress
      # @return [Integer] items that were worked at, with and without success
      attr_reader :done
      # @return [Integer] those without
      attr_reader :failed

      def busy? = @in_progress > 0

      # @return [Boolean] false: it takes nothing new
      def give(item)
        @lock.synchronize do
          return false if @quiet

          @waiting << item
          @news.signal
          true
        end
      end

      # From now on nothing is begun.
      # @return [Array<Object>] items that were given and not begun
      def quiet
        @lock.synchronize do
          @quiet = true
          @waiting.slice!(0..)
        end
      end

      # Ends the threads; what is in progress is broken off.
      # @param within [Numeric] seconds
      # @return [Boolean] whether they are gone
      def stop(within)
        quiet
        @lock.synchronize do
          @ended = true
          @news.broadcast
        end
        deadline = now + within
        @threads.each(&:kill) if busy?
        @threads.map { |thread| thread.join([deadline - now, 0].max) }.all?
      end

      # @return [Boolean] whether each thread lives that is needed; an item may have ended its own
      def complete? = @quiet || @threads.all?(&:alive?)

      private

      def run
        while (item = take)
          begin
            success = nil
            success = attempt(item.first)
          ensure # the job may end its thread, and a stop does
            finish(success)
          end
        end
      end

      # @return [Array(Object), nil]
      def take
        @lock.synchronize do
          @news.wait(@lock) while @waiting.empty? && !@ended
          return if @ended

          @in_progress += 1
          [@waiting.shift]
        end
      end

      # Nothing that a job raises may end the thread, nor the node: `exit` in a job is the job's failure.
      def attempt(item)
        @work.call(item) != false
      rescue Exception # rubocop:disable Lint/RescueException
        false
      end

      # @param success [Boolean, nil] nil: it was broken off
      def finish(success)
        @lock.synchronize do
          @in_progress -= 1
          next if success.nil? && @ended

          @done += 1
          @failed += 1 unless success
        end
      end

      def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    end
  end
end
