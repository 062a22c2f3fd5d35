# frozen_string_literal: true

module Bench
  module Threads
    # The load of Mixed on simulated workers that cost nothing: a request waits for the first worker whose interpreter
    # lock is free, and stays there; of several workers, the one with the fewest requests takes it. Arrivals are random,
    # as those of OpenLoad.
    class BestCase
      # @!attribute parts [Integer] of computing that are left, and a pause after each
      Request = Struct.new(:began_at, :parts, :worker)

      # @!attribute waiting [Array<Request>] for its interpreter lock, in order
      # @!attribute ready_at [Float] when the one that computes, `running`, lets the lock go
      # @!attribute requests [Integer] that it has, with those that pause
      Worker = Struct.new(:waiting, :running, :ready_at, :requests) do
        def free? = running.nil? && waiting.empty?
      end

      # @param compute [Integer] microseconds of a part @param pause [Integer] microseconds after it
      def initialize(workers:, parts:, compute:, pause:)
        @workers = Array.new(workers) { Worker.new([], nil, nil, 0) }
        @parts = parts
        @compute = compute
        @pause = pause
        @arrived = [] # requests that no worker has
        @paused = [] # times and requests, in order, since all pauses are equally long
        @latencies = []
      end

      # @param share [Float] of what the workers can compute
      # @param count [Integer] requests
      # @return [Array<Integer>] microseconds that each took
      def run(share, count, random: Random.new(1))
        between = @parts * @compute / (@workers.size * share)
        at = 0.0
        arrivals = Array.new(count) { (at -= Math.log(1 - random.rand) * between).round }
        take(next_event(arrivals), arrivals) while @latencies.size < count
        @latencies
      end

      private

      # Of several at the same time, the end of a pause comes first: a worker whose own request waits takes no other.
      def next_event(arrivals)
        ends = @workers.select(&:running).map { |worker| [worker.ready_at, worker] }
        [@paused.first, *ends, ([arrivals.first, :arrival] if arrivals.any?)].compact.min_by(&:first)
      end

      def take((now, what), arrivals)
        case what
        when :arrival then @arrived << Request.new(arrivals.shift, @parts)
        when Worker then pause(what, now)
        else resume(@paused.shift.last, now)
        end
        @workers.each { |worker| compute(worker, now) }
        hand_over(now)
      end

      def pause(worker, now)
        worker.running.parts -= 1
        @paused << [now + @pause, worker.running]
        worker.running = nil
      end

      def resume(request, now)
        return request.worker.waiting << request if request.parts.positive?

        request.worker.requests -= 1
        @latencies << (now - request.began_at)
      end

      def compute(worker, now)
        return if worker.running || worker.waiting.empty?

        worker.running = worker.waiting.shift
        worker.ready_at = now + @compute
      end

      def hand_over(now)
        while @arrived.any? && (worker = @workers.select(&:free?).min_by(&:requests))
          request = @arrived.shift
          request.worker = worker
          worker.requests += 1
          worker.waiting << request
          compute(worker, now)
        end
      end
    end
  end
end
