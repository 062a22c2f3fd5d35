# frozen_string_literal: true

require "pando/batch"

module Pando
  class Batch
    # Fetch, work off, settle, over and over: a consumer of your own, with all that a runner of `pando swarm` has.
    #
    #     node(:orders, count: 2) do
    #       client = Broker.connect
    #       Pando::Batch::Consumer.new(threads: 5, attempts: 3,
    #                                  fetch:  -> { client.receive(10) },
    #                                  settle: ->(result) { client.delete(result.done) },
    #                                  close:  -> { client.close }) { |message| handle(message) }
    #     end
    #
    # `fetch` and `settle` are called in one thread of its own, one after the other. An error in either is told on
    # stderr and followed by a wait that grows up to {LONGEST} seconds: a broker that is away is asked again, without
    # haste.
    class Consumer
      # Seconds of the first wait after an error, and of the longest.
      FIRST = 0.5
      LONGEST = 15.0
      # Seconds that `settle` has at a stop, and a `fetch` that was told to wake.
      SETTLE = 5.0

      # @return [Integer] items, those that failed too
      def done = @batch.done + @batch.failed
      # @return [Integer] items that no attempt is left for
      def failed = @batch.failed
      # @return [Integer] items that are being done
      def in_progress = @batch.in_progress

      # @param fetch [#call] returns an Array of items, or nil. It may wait for some, as brokers' clients do
      # @param settle [#call, nil] called with the Result of what was fetched: acknowledge, commit. Not called if this
      #   process dies before, and then the broker delivers again
      # @param key [#to_proc, nil] of an item: see Batch#run
      # @param wake [#call, nil] ends a `fetch` that waits; called by {#quiet}, on whichever thread that is
      # @param close [#call, nil] called at the end of {#stop}, once no thread is left
      # @param idle [Numeric] seconds that a `fetch` which brought nothing takes at least
      # @param grace [Numeric] seconds that running items have at a stop, after those in which it was quiet; and then
      #   a `fetch` that nothing wakes
      # @param options what Batch.new takes
      # @yieldparam item [Object]
      # @raise [ArgumentError]
      def initialize(fetch:, settle: nil, key: nil, wake: nil, close: nil, idle: 0.5, grace: 0.1, **options, &work)
        raise ArgumentError, "what is to be done with the items? A block is missing" unless work

        Demand.callable(:fetch, fetch)
        { settle: settle, wake: wake, close: close }.compact.each { |name, value| Demand.callable(name, value) }
        Demand.key(key)
        Demand.seconds(:idle, idle)
        @fetch = fetch
        @settle = settle
        @key = key
        @wake = wake
        @close = close
        @idle = idle
        @grace = grace
        @batch = Batch.new(grace: grace, **options, &work)
        @lock = Mutex.new
        @rounds = 0
        @stage = :fetch
      end

      # @return [self]
      def start
        @quiet = false
        @stage = :fetch
        @bell = Mailbox.new
        @errors = 0
        @batch.start
        @thread = Thread.new { consume }
        self
      end

      # Fetches nothing more; what has been fetched is done and settled. What a `fetch` that goes on still brings is not
      # begun: `settle` gets it as unfinished.
      #
      # @return [void]
      def quiet
        return if @quiet

        @lock.synchronize { @quiet = true }
        @bell&.push(:quiet)
        @wake&.call
      rescue StandardError => e
        Complaint.make("a consumer's wake raised", e)
      end

      # What is not done by now is in the last result that `settle` gets, as unfinished.
      #
      # @return [void]
      # @raise [ThreadError] in one of its own threads, which would wait for itself: nothing has changed then. {#quiet}
      #   may be called there
      def stop
        if Thread.current.equal?(@thread) || @batch.member?
          raise ThreadError, "a thread of the consumer cannot wait for its end"
        end

        quiet
        @batch.stop
        end_thread if @thread
        @close&.call
      end

      # @return [Boolean] whether something that was fetched is being done or settled. If all that is left of it waits
      #   for another attempt it is not: a stop gives that back
      def busy? = @stage == :work && !@batch.resting?

      # @return [Integer] attempts and settlements
      def progress = @batch.progress + @rounds

      # @return [String, nil] what is wrong. That the broker is away is not this process's fault
      def healthy? = @thread && !@thread.alive? && !@quiet ? "the thread that fetches has died" : @batch.healthy?

      private

      def end_thread
        Crew.end_all([@thread], Deadline.in(@stage == :fetch && !@wake ? @grace : SETTLE))
        @thread = nil
      end

      def consume
        ForkSafety::NativeThread.name("fetch")
        round until @quiet
      rescue Exception => e # rubocop:disable Lint/RescueException
        Complaint.make("the thread that fetches has ended:", e)
      ensure
        ForkSafety::NativeThread.rest
      end

      def round
        items = patiently { fetch } || []
        return if items.empty?

        @lock.synchronize { @stage = @quiet ? :give_back : :work }
        result = work_off(items)
        patiently { @settle&.call(result) }
        @rounds += 1
      ensure
        @stage = :fetch
      end

      def fetch
        began = Deadline.now
        items = (@fetch.call || []).to_a
        pause(@idle - (Deadline.now - began)) if items.empty?
        items
      end

      # Fetched while it became quiet or was stopped: all of it is unfinished.
      def work_off(items)
        raise Closed if @stage == :give_back

        @batch.run(items, key: @key)
      rescue Closed
        Result.new(items.map { |item| Job.new(item, nil, nil) })
      end

      def patiently
        value = yield
        @errors = 0
        value
      rescue StandardError => e
        Complaint.make("a consumer's fetch or settle raised", e)
        pause([FIRST * (2**[@errors, 10].min), LONGEST].min)
        @errors += 1
        nil
      end

      # Ends early when it is quiet.
      def pause(seconds)
        @bell.pop(timeout: seconds) if seconds.positive? && !@quiet
      end
    end
  end
end
