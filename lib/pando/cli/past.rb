# frozen_string_literal: true

require "time"
require "pando/table"
require "pando/telemetry/printable"

module Pando
  module CLI
    # The past of a server from a moment on, read from /history.json, for `pando history`.
    class Past
      # A refork, a reload or a reboot. `before` and `after` are bytes (PSS of the molds and workers) when it began and
      # some time after its end; nil: not known.
      Change = Struct.new(:time, :what, :reason, :seconds, :before, :after, keyword_init: true) do
        def saved = before && after && (before - after)
      end

      # Of /history.json.
      KEYS = %w[day hour events].freeze
      # Rows of the table over time, at most.
      ROWS = 24
      # Seconds after the end of a refork by which its workers have been measured and have served a little.
      MEASURED = 20
      MIB = 1_048_576.0
      # Bytes by which something must have grown to be named as the cause.
      NOTABLE = 4 * 1_048_576
      PRIVATE = "private, "
      OWNERS = { "worker" => "the workers'", "service" => "the services'", "admin" => "the admin process's",
                 "shared" => "shared" }.freeze
      CHANGE = /\A(refork|reload|reboot)\.(\w+)\z/
      ENDS = %w[finished failed refused].freeze
      NONE = "nothing is known of that time: the history begins with the server's `admin` line, has a value each ten " \
             "seconds, and holds 24 hours"

      # @param facts [Hash{String => Object}] @param since [Integer] a UNIX time
      # @param pool [String, nil] whose requests and changes are of interest; nil: those of all
      def initialize(facts, since, pool = nil)
        day, hour, @events = facts.values_at(*KEYS)
        # A value each minute for the last day, and one each ten seconds for the last hour.
        begin_of_hour = hour.dig(0, "t") || Float::INFINITY
        @all = day.take_while { |sample| sample["t"] < begin_of_hour } + hour
        @samples = @all.select { |sample| sample["t"] >= since }
        @since = since
        @names = @samples.flat_map { |sample| sample["pools"].keys }.uniq
        choose(pool) if pool && !empty?
      end

      def empty? = @samples.empty?

      # @return [Hash{String => Object}] times are UNIX times, sizes are bytes
      def to_h
        { "since" => @since, "samples" => @samples, "memory" => parts,
          "changes" => changes.map { |one| { **one.to_h, saved: one.saved }.compact.transform_keys(&:to_s) } }
      end

      # @return [String] of a past that is not empty
      def text = [*growth, "", *courses, *table_of_changes].join("\n")

      # Reforks, reloads and reboots that began since then, the oldest first.
      def changes = @changes ||= found_changes.sort_by(&:time)

      private

      # What belongs to no pool, such as a reload, concerns all.
      def choose(pool)
        raise UsageError, "there is no pool #{pool}, but #{@names.join(", ")}" unless @names.include?(pool)

        @events = @events.select { |event| [pool, nil].include?(event["pool"]) }
        @names = [pool]
      end

      # Memory at the beginning and at the end, by what it belongs to.
      def parts
        return {} if @samples.empty?

        first, last = @samples.values_at(0, -1)
        roles = first["private"].keys | last["private"].keys
        { **roles.to_h { |role| ["#{PRIVATE}#{role}", [first, last].map { |one| one["private"].fetch(role, 0) }] },
          "shared" => [first["shared"], last["shared"]] }
      end

      def growth
        totals, counts = [method(:total), method(:workers)].map { |figure| ends.map(&figure) }
        rows = [*parts.map { |name, sizes| [name, *mebibytes(sizes)] }, ["total", *mebibytes(totals)],
                ["workers", *counts, counts.last - counts.first]]
        times = ends.map { |sample| clock(sample["t"]) }
        ["#{summary}#{cause}#{peak}", "", *Table.new(["MiB", *times, "change"], rows).lines]
      end

      def summary
        before, after = ends.map { |sample| mib(total(sample)) }
        whole = "Memory of all processes"
        since = "since #{clock(ends.first["t"])}"
        return "#{whole} is #{after} MiB, as it was #{since}." if after == before

        "#{whole} has #{after > before ? "grown" : "fallen"} from #{before} MiB to #{after} MiB #{since}."
      end

      # The part that has grown most, or fallen most.
      def cause
        sign = total(ends.last) <=> total(ends.first)
        name, (before, after) = parts.max_by { |_, (one, other)| (other - one) * sign }
        return if (after - before) * sign < NOTABLE

        owner = OWNERS.fetch(name.delete_prefix(PRIVATE)) { |role| "the #{role}'s" }
        memory = "#{owner.capitalize} #{"private " unless name == "shared"}memory"
        " #{memory} has #{sign.positive? ? "grown" : "fallen"} most (#{format("%+d", mib(after - before))} MiB)."
      end

      # @return [String, nil] nil: memory was never far above its beginning and its end
      def peak
        highest = @samples.max_by { |sample| total(sample) }
        return if total(highest) - ends.map { |sample| total(sample) }.max < NOTABLE

        " It was #{mib(total(highest))} MiB at #{clock(highest["t"])}."
      end

      def ends = @samples.values_at(0, -1)

      # Memory is that of the whole server, the rest that of one pool.
      def courses
        common = %w[time MiB private shared]
        figures = ["workers", "generation", "req/s", "p95 ms", "queue ms"]
        if (name = @names.first) && @names.one?
          return [*course([*common, *figures]) { |span| [*memory(span), *pool_figures(span, name)] }, *legend, ""]
        end

        pools = @names.map do |pool|
          ["Pool #{pool}", *course(["time", *figures]) { |span| pool_figures(span, pool) }, ""]
        end
        [*course(common) { |span| memory(span) }, *legend, "", *pools.flatten]
      end

      def course(titles)
        Table.new(titles, spans.map { |span| [clock(span.last["t"]), *yield(span)] }).lines
      end

      # The samples in at most so many groups of almost the same size. The first and the last stand alone.
      def spans
        return @samples.map { |sample| [sample] } if @samples.size <= ROWS

        inner = @samples[1..-2]
        rows = ROWS - 2
        groups = inner.each_with_index.group_by { |_, place| place * rows / inner.size }
        [[@samples.first], *groups.values.map { |pairs| pairs.map(&:first) }, [@samples.last]]
      end

      def legend
        most = spans.map(&:size).max
        return [] if most == 1

        ["Each row stands for up to #{most} values: the most memory, the longest times, the mean of requests. " \
         "--format json has them all."]
      end

      def memory(span)
        sample = span.max_by { |one| total(one) }
        [total(sample), sample["private"].values.sum, sample["shared"]].map { |size| mib(size) }
      end

      def pool_figures(span, name)
        pools = span.map { |sample| sample["pools"].fetch(name, {}) }
        requests = pools.filter_map { |pool| pool["requests"] }
        times = %w[p95 queue].map { |key| pools.filter_map { |pool| pool[key] }.max&.*(1000.0) }
        [*pools.last.values_at("workers", "generation").map { |number| number || "" },
         *[requests.empty? ? nil : requests.sum / requests.size, *times].map { |number| decimal(number) }]
      end

      # A table shows 0.0 as a dot.
      def decimal(number) = number.nil? ? "" : number.to_f.nonzero? || 0

      def table_of_changes
        return ["No refork, reload or reboot since then."] if changes.empty?

        rows = changes.map do |one|
          memory = one.saved ? ["#{mib(one.before)} -> #{mib(one.after)}", mib(one.saved)] : ["", ""]
          [clock(one.time), one.what, decimal(one.seconds), *memory,
           Telemetry::Printable.escape(one.reason.to_s, 160)]
        end
        Table.new(["time", "change", "took, s", "MiB", "saved", "reason"], rows).lines
      end

      # Finds the beginning and the end of each change.
      def found_changes
        started = {}
        reasons = {}
        over = steps.filter_map do |step, key, event|
          verb = step.last
          reasons[key] = event["reason"] if event["decision"] == "refork"
          started[key] = event if verb == "started"
          next if !ENDS.include?(verb) || told_otherwise?(event, started[key])
          next change(step, nil, event, nil) if verb == "refused" # another one may be under way

          change(step, started.delete(key), event, reasons.delete(key))
        end
        over + started.filter_map { |key, event| change([key.first, "under way"], event, nil, reasons[key]) }
      end

      # @return [Array<Array>] a change and what has happened to it, its name and pool, and the event that tells so
      def steps
        @events.filter_map do |event|
          step = event["event"].scan(CHANGE).first
          [step, [step.first, event["pool"]], event] if step
        end
      end

      # If a refork had begun before it was refused, `refork.failed` tells of its end. One that fails after it had
      # finished is shown as taken back.
      def told_otherwise?(event, started)
        case event["event"]
        when "refork.refused" then event.key?("generation")
        when "refork.failed" then started&.fetch("generation", nil) != event["generation"]
        end
      end

      # Generations that were replaced by the ones before them, also after their rollout.
      # @return [Hash{Array(String, Integer) => Hash}] the event by pool and generation
      def discarded
        @discarded ||= @events.select { |event| event["event"] == "generation.discarded" }
                              .to_h { |event| [event.values_at("pool", "generation"), event] }
      end

      # @param step [Array(String, String)] @param event [Hash, nil] of its end; nil: it is under way
      # @param reason [String, nil] of `refork :auto`
      def change(step, started, event, reason)
        began = Time.parse((started || event).fetch("time")).to_f
        return if began < @since

        withdrawn = discarded[event.values_at("pool", "generation")] if event && step.last == "finished"
        step = [step.first, "taken back"] if withdrawn
        Change.new(time: began, what: words(step, started, event || started),
                   reason: reasons(step, started, withdrawn || event, reason).find(&:itself),
                   **duration(began, event), **(step.last == "finished" ? saving(began, event) : {}))
      end

      # Of a failure, its own comes first.
      def reasons(step, started, event, reason)
        known = [reason, started&.fetch("reason", nil), event&.fetch("reason", nil)]
        event && step.last != "finished" ? known.rotate(-1) : known
      end

      def duration(began, event)
        event ? { seconds: event["seconds"] || (Time.parse(event.fetch("time")).to_f - began) } : {}
      end

      def words((name, verb), started, event)
        verb = nil if verb == "finished"
        source = ", from worker #{started["slot"]} after #{started["requests"]} requests" if started&.key?("slot")
        pool, generation = event.values_at("pool", "generation")
        [name, ("of #{pool}" if pool), ("to generation #{generation}" if generation), verb]
          .compact.join(" ") + source.to_s
      end

      # Of all generations of the pool, or of all pools.
      def saving(began, event)
        ended = Time.parse(event.fetch("time")).to_f
        { before: @all.reverse_each.find { |sample| sample["t"] + 1 <= began }, # it has no fractions
          after: @all.find { |sample| sample["t"] >= ended + MEASURED } }
          .transform_values { |sample| sample && memory_of_pools(sample, event["pool"]) }
      end

      def memory_of_pools(sample, pool)
        pools = pool ? [sample["pools"][pool]] : sample["pools"].values
        sizes = pools.compact.flat_map { |one| one.fetch("memory", {}).values }
        sizes.sum if sizes.any?
      end

      def total(sample) = sample["private"].values.sum + sample["shared"]
      def workers(sample) = sample["pools"].values.sum { |pool| pool["workers"].to_i }
      def mebibytes(sizes) = sizes.map { |size| mib(size) }.then { |before, after| [before, after, after - before] }
      def mib(bytes) = (bytes / MIB).round

      # With the day, if it is another one.
      def clock(time)
        time = Time.at(time)
        time.strftime(time.to_date == Time.now.to_date ? "%T" : "%F %T")
      end
    end
  end
end
