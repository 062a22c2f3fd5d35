# frozen_string_literal: true

require "json"
require "pando/admin/metrics_source"
require "pando/admin/monitor"

module Pando
  module Admin
    # What the dashboard shows of the past: a value each ten seconds for the last hour, one each minute for the last
    # day, and the last events. Its size is bounded. Owned by the admin process, on a thread of which it samples. It is
    # saved with each value in a file that the monitor keeps, so that it outlives this process.
    class History
      # Seconds between two samples, and how many are kept.
      Resolution = Struct.new(:seconds, :most)
      RESOLUTIONS = { "hour" => Resolution.new(10, 360), "day" => Resolution.new(60, 1440) }.freeze
      # Seconds after which a sample is taken anew that lacks the memory of new processes, and how often.
      AGAIN = 1.0
      TRIES = 3
      # Events that are kept: of those that tell how the server changes, and of the others, which may be many.
      EVENTS = 200
      MILESTONE = /\A(refork|generation|reload|monitor|server|canary|reboot|pool|setting)\./
      # Bytes of an event that is kept.
      LONGEST = 4096
      # Bytes at the beginning of the file, for its length.
      HEAD = 16
      EMPTY = (" " * HEAD).freeze

      # @param monitor [Monitor] @param survey [MemorySurvey] @param file [File, nil] nil: it is not saved
      def initialize(monitor, survey, file = nil)
        @monitor = monitor
        @survey = survey
        @file = file
        @lock = Mutex.new
        @saving = Mutex.new
        @samples = RESOLUTIONS.transform_values { [] }
        @last = {}
        @events = { true => [], false => [] }
        @count = @known = 0
        restore
      end

      # @return [Integer] the monitor's number of the last event that is known; 0: none
      attr_reader :known

      def start
        Thread.new do
          loop do
            TRIES.downto(1) { |left| take(complete: left > 1) ? break : sleep(AGAIN) }
            sleep(RESOLUTIONS.each_value.map(&:seconds).min)
          end
        end
        self
      end

      # Takes a sample for each resolution whose time has come.
      # @param complete [Boolean] whether it must have the memory of all kinds of processes
      # @return [Boolean] whether it could
      def take(complete: false)
        sample = Sample.new(@monitor.snapshot, @survey)
        return false if complete && !sample.measured?

        kept = RESOLUTIONS.filter_map { |name, resolution| keep(name, resolution, sample) }
        save if kept.any?
        true
      rescue Monitor::Unavailable
        true # a gap
      end

      # The events begin after this number, unless some are known.
      def begin_after(number)
        return unless known.zero?

        @known = number
        save
      end

      # @param name [String] @param text [String] JSON @param number [Integer] the monitor's
      def event(name, text, number = known)
        @lock.synchronize do
          @known = number
          next if text.bytesize > LONGEST

          kept = @events[name.match?(MILESTONE)]
          kept << [@count += 1, text]
          kept.shift while kept.size > EVENTS
        end
      end

      # @return [String] JSON
      def json(more = {})
        @lock.synchronize do
          events = @events.values.flatten(1).sort_by(&:first).map(&:last)
          arrays = { "events" => events, **@samples }.map { |name, all| "\"#{name}\":[#{all.join(",")}]" }
          more = { "known" => known, **more }
          "{#{[*arrays, *more.map { |name, value| "\"#{name}\":#{JSON.generate(value)}" }].join(",")}}"
        end
      end

      # @return [String, nil] JSON of the newest sample of the last hour
      def newest = @lock.synchronize { @samples["hour"].last }

      private

      # The clock of `sleep` may be a little early.
      # @return [Boolean, nil] whether there is a new value
      def keep(name, resolution, sample)
        last = @last[name] ||= sample
        return if sample.taken_at - last.taken_at < resolution.seconds - 0.5

        @last[name] = sample
        text = JSON.generate(sample.since(last))
        @lock.synchronize do
          @samples[name] << text
          @samples[name].shift while @samples[name].size > resolution.most
        end
        true
      end

      def save
        @saving.synchronize { write_file } if @file
      end

      # The length comes last: a process that dies meanwhile leaves a file that does not count.
      def write_file
        text = json
        @file.pwrite(EMPTY, 0)
        @file.truncate(HEAD + text.bytesize)
        @file.pwrite(text, HEAD)
        @file.pwrite(text.bytesize.to_s.rjust(HEAD), 0)
      rescue SystemCallError
        nil # no memory: the next one may succeed
      end

      # Another version of Pando may have written something else.
      def restore
        past = JSON.parse(saved || "{}")
        @samples.each { |name, all| all.concat(past.fetch(name).map { |sample| JSON.generate(sample) }) }
        @known = past.fetch("known")
        past.fetch("events").each { |event| event(event.fetch("event"), JSON.generate(event)) }
      rescue JSON::ParserError, KeyError, NoMethodError, TypeError
        nil # it begins anew
      end

      def saved
        size = @file&.pread(HEAD, 0).to_i
        @file.pread(size, HEAD).force_encoding("UTF-8") if size.positive?
      rescue EOFError
        nil # nothing was saved yet
      end
    end

    # The state of the server at one moment, and what it has done since an earlier one. History keeps the differences.
    class Sample
      PERCENTILES = { "p50" => 0.5, "p95" => 0.95, "p99" => 0.99 }.freeze

      # When it was taken (Sys.now), counters by pool, histograms by kind and pool.
      attr_reader :taken_at, :counted, :times

      def initialize(snapshot, survey)
        @taken_at = snapshot.taken_at
        @time = Time.now.to_i
        @source = MetricsSource.new(snapshot, survey)
        @counted = counters
        @times = %w[duration queue].to_h { |kind| [kind, @source.histograms(kind)] }
      end

      def measured? = @source.measured?

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
