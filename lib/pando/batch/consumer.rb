# frozen_string_literal: true

require "pando/batch"

module Pando
  class Batch
    # Fetches, processes and settles, again and again: a consumer of your own, with all methods of a runner of `pando
    # swarm`; docs/batch.md has an example.
    #
    # The consumer calls `fetch` and `settle` in one thread of its own, one after the other. It writes an error in
    # either to stderr and then pauses, longer each time, up to {LONGEST} seconds. So a broker that is down is asked
    # again, with pauses. A `settle` that raises gets the same result up to {TRIES} times before the next `fetch`.
    class Consumer
      # Seconds of the first pause after an error, and of the longest.
      FIRST = 0.5
      LONGEST = 15.0
      # Calls of `settle` with one result, in about 15 seconds. Some clients cannot settle anything any more before they
      # fetch again.
      TRIES = 5
      # An offset that covers later items would cover them too.
      UNSETTLED = "items are unfinished, and settle did not succeed for them: only a new process can begin again there"
      private_constant :UNSETTLED
      # Seconds that `settle` gets at a stop, and a `fetch` that was told to wake.
      SETTLE = 5.0

      # @return [Integer] items, including failed ones
      def done = @batch.done + @batch.failed
      # @return [Integer] items that have used up their attempts
      def failed = @batch.failed
      # @return [Integer] items being processed now
      def in_progress = @batch.in_progress

      # @param fetch [#call] returns an Array of items, or nil. It may wait for items, as brokers' clients do
      # @param settle [#call, nil] called with the Result of what was fetched: acknowledge, commit. If it raises, it
      #   is called again with the same Result, and at last given up. Then, and if this process dies first, the broker
      #   delivers again
      # @param key [#to_proc, nil] gets the key of an item: see Batch#run
      # @param wake [#call, nil] ends a `fetch` that waits; {#quiet} calls it on its caller's thread
      # @param close [#call, nil] called at the end of {#stop}, once no thread is left
      # @param idle [Numeric] minimum duration in seconds of a `fetch` that brought nothing
      # @param grace [Numeric] seconds that running items get at a stop, after the time since {#quiet}; then the same
      #   time for a `fetch` that nothing wakes
      # @param options further options of Batch.new
      # @yieldparam item [Object]
      # @raise [ArgumentError]
      def initialize(fetch:, settle: nil, key: nil, wake: nil, close: nil, idle: 0.5, grace: 0.1, **options, &work)
        raise ArgumentError, "no block given: pass a block that processes an item" unless work

        Arguments.callable(:fetch, fetch)
        { settle: settle, wake: wake, close: close }.compact.each { |name, value| Arguments.callable(name, value) }
        Arguments.key(key)
        Arguments.seconds(:idle, idle)
        @fetch = fetch
        @settle = settle
        @key = key
        @wake = wake
        @close = close
        @idle = idle
        @grace = grace
        @batch = Batch.new(grace: grace, **options, &work)
        @lock = Mutex.new
        @settlements = 0
        @stage = :fetch
      end

      def start
        @quiet = false
        @stage = :fetch
        @wakeups = TimedQueue.new
        @errors = 0
        @batch.start
        @thread = Thread.new { consume }
        self
      end

      # Fetches nothing more. Items that were fetched are processed and settled. If a `fetch` that is under way still
      # brings items, they do not begin: `settle` gets them as unfinished.
      def quiet
        return if @quiet

        @lock.synchronize { @quiet = true }
        @wakeups&.push(:quiet)
        @wake&.call
      rescue StandardError => e
        ErrorLog.write("a consumer's wake raised", e)
      end

      # The last result that `settle` gets has the remaining items, as unfinished.
      #
      # @raise [ThreadError] the caller is one of the consumer's own threads, which would wait for itself. Nothing has
      #   changed then. Such a thread may call {#quiet}
      def stop
        if Thread.current.equal?(@thread) || @batch.member?
          raise ThreadError, "a thread of the consumer cannot stop the consumer: call quiet there"
        end

        quiet
        @batch.stop
        end_thread if @thread
        @close&.call
      end

      # @return [Boolean] whether fetched items are being processed or settled. If all that are left wait for another
      #   attempt, it is not busy: a stop gives them back
      def busy? = @stage == :work && !@batch.only_retries?

      # @return [Integer] attempts and calls of `settle` that have ended
      def progress = @batch.progress + @settlements

      # @return [String, nil] what is wrong. A broker that is down does not count: that is not this process's fault
      def healthy? = @thread && !@thread.alive? && !@quiet ? "the thread that fetches has died" : @batch.healthy?

      private

      def end_thread
        ThreadPool.end_all([@thread], Deadline.in(@stage == :fetch && !@wake ? @grace : SETTLE))
        @thread = nil
      end

      def consume
        Thread.current.name = "fetch"
        round until @quiet
      rescue Exception => e # rubocop:disable Lint/RescueException
        ErrorLog.write("the thread that fetches has ended:", e)
      ensure
        ForkSafety::NativeThread.rest
      end

      def round
        errors = @errors
        items = with_pause_on_error { fetch } || []
        work_on(items) unless items.empty?
        @errors = 0 if @errors == errors
      ensure
        @stage = :fetch
      end

      def work_on(items)
        @lock.synchronize { @stage = @quiet ? :give_back : :work }
        settle(process(items))
      end

      # Repeats a `settle` that raises, since the broker would deliver everything again. After `quiet` it is called only
      # once.
      def settle(result)
        TRIES.times do
          last = @quiet
          return if settled?(result)
          break if last
        end
        raise Error, UNSETTLED unless @quiet || result.complete?

        warn "pando: a consumer gives a result up: its broker will deliver it again"
      end

      def settled?(result)
        with_pause_on_error do
          @settle&.call(result)
          true
        end
      ensure
        @settlements += 1
      end

      def fetch
        began = Deadline.now
        items = (@fetch.call || []).to_a
        pause(@idle - (Deadline.now - began)) if items.empty?
        items
      end

      # If these items were fetched while the consumer became quiet or stopped, all of them are unfinished.
      def process(items)
        raise Closed if @stage == :give_back

        @batch.run(items, key: @key)
      rescue Closed
        Result.new(items.map { |item| Job.new(item, nil, nil) })
      end

      def with_pause_on_error(&)
        ForkGuard.call(&)
      rescue StandardError => e
        ErrorLog.write("a consumer's fetch or settle raised", e)
        pause([FIRST * (2**[@errors, 10].min), LONGEST].min)
        @errors += 1
        nil
      end

      # Returns early when the consumer becomes quiet.
      def pause(seconds)
        @wakeups.pop(timeout: seconds) if seconds.positive? && !@quiet
      end
    end
  end
end
