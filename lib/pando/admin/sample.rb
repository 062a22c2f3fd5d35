# frozen_string_literal: true

require "pando/admin/metrics_source"

module Pando
  module Admin
    # The state of the server at one moment, and what it has done since an earlier one. History keeps the differences.
    class Sample
      PERCENTILES = { "p50" => 0.5, "p95" => 0.95, "p99" => 0.99 }.freeze

      # @return [Float] on Sys.now
      attr_reader :taken_at
      # @return [Hash{String => Hash}] counters that only grow, by pool
      attr_reader :counted
      # @return [Hash{String => Hash{String => Pando::Histogram}}] by kind and pool
      attr_reader :times

      # @param snapshot [Snapshot] @param survey [#[]] the memory of each process
      def initialize(snapshot, survey)
        @taken_at = snapshot.taken_at
        @time = Time.now.to_i
        @source = MetricsSource.new(snapshot, survey)
        @counted = counters
        @times = %w[duration queue].to_h { |kind| [kind, @source.histograms(kind)] }
      end

      # @return [Boolean] whether there is a process of each role and pool whose memory is known
      def measured? = @source.measured?

      # @param earlier [Sample]
      # @return [Hash{String => Object}] "t" is a UNIX time, rates are per second, times are seconds, sizes are bytes
      def since(earlier)
        seconds = [@taken_at - earlier.taken_at, 0.001].max
        pools = @counted.to_h do |pool, _|
          [pool, { **now(pool), **rates(pool, earlier, seconds), **latency(pool, earlier) }]
        end
        { "t" => @time, "pools" => pools, **memory }
      end

      private

      # Requests and errors, or jobs and those that failed.
      def counters
        pools = by_pool(@source.of_pools("name")).keys
        counts = pools.to_h { |pool| [pool, { "requests" => 0, "errors" => 0 }] }
        @source.answers.each { |labels, count| add(counts[labels[:pool]], labels, count) }
        { "requests" => "requests", "errors" => "failures" }.each do |name, of_jobs|
          by_pool(@source.work(of_jobs, jobs: true)).each { |pool, count| counts[pool][name] = count.to_i }
        end
        counts
      end

      def add(counts, labels, count)
        return unless counts

        counts["requests"] += count
        counts["errors"] += count if labels[:status] == "5xx"
      end

      def rates(pool, earlier, seconds)
        before = earlier.counted.fetch(pool, {})
        @counted[pool].to_h { |name, count| [name, ([count - before.fetch(name, 0), 0].max / seconds).round(3)] }
      end

      def latency(pool, earlier)
        duration, queue = %w[duration queue].map { |kind| passed(kind, pool, earlier) }
        { **PERCENTILES.transform_values { |share| duration&.percentile(share)&.round(4) },
          "queue" => queue&.percentile(0.95)&.round(4) }.compact
      end

      def passed(kind, pool, earlier)
        now = @times[kind][pool] or return
        before = earlier.times[kind][pool]
        before ? now - before : now
      end

      def now(pool)
        @now ||= { "busy" => busy, "workers" => by_pool(@source.of_pools("ready", 0)),
                   "threads" => by_pool(@source.work("threads")), "queued" => by_pool(@source.queue("queued")),
                   "generation" => by_pool(@source.current("number")), "memory" => @source.memory_of_generations }
        @now.filter_map { |name, values| [name, values[pool]] if values[pool] }.to_h
      end

      # Workers that serve a request, by pool.
      def busy
        @source.all("group").each_with_object(Hash.new(0)) do |one, counts|
          counts[@source.pool(one["pool"])] += one["count"] if one["role"] == "worker" && one["state"] == "busy"
        end
      end

      def memory
        own = @source.memory(:private)
        { "private" => own.each_with_object(Hash.new(0)) { |(labels, size), sums| sums[labels[:role]] += size },
          "shared" => @source.memory(:shared).values.sum }
      end

      def by_pool(values) = values.transform_keys { |labels| labels[:pool] }
    end
  end
end
