# frozen_string_literal: true

require "pando/cluster/control/line"
require "pando/histogram"
require "pando/sys/memory"

module Pando
  module CLI
    class Top
      # What `pando top` computes from the monitor's records beyond what they say: requests per second, latency over the
      # last seconds, and the memory of each process. Used by Feed, in the command's process.
      class Measurements
        # Seconds over which latency and the rates by status are computed.
        WINDOW = 5.0
        # Seconds of measuring memory each time; a large process takes some milliseconds. The rest waits for next time.
        BUDGET = 0.03
        # What the counts of a `responses` record are.
        CLASSES = %w[other 1xx 2xx 3xx 4xx 5xx].freeze
        # One answer of the server.
        Sample = Struct.new(:at, :requests, :answers, :times)

        # What was computed for one answer of the server.
        # `rates`: requests per second by pid; `classes`: per second by class of the status; `latency`: [p50, p99] in
        # seconds by kind; `memory`: Sys::Memory::Usage by pid.
        Results = Struct.new(:rates, :classes, :latency, :memory, keyword_init: true)

        def initialize(usage: Sys::Memory.method(:usage), clock: -> { Process.clock_gettime(Process::CLOCK_MONOTONIC) })
          @usage = usage
          @clock = clock
          @samples = []
          @memory = {}
        end

        # @param everything [Boolean] whether the memory of all processes is measured, however long it takes
        def take(records, everything: false)
          now = sample(records)
          @samples.clear if restarted?(records)
          last = @samples.last
          @samples << now
          @samples.shift while @samples.size > 2 && now.at - @samples[1].at >= WINDOW
          measure(pids(records), everything)
          Results.new(rates: rates(last, now), classes: classes(@samples.first, now),
                      latency: latency(@samples.first, now), memory: @memory.dup)
        end

        private

        def restarted?(records)
          server = records.assoc("server")&.last&.fetch("pid", nil)
          changed = server != @server
          @server = server
          changed
        end

        def sample(records)
          requests = all(records, "worker").to_h { |one| one.values_at("pid", "requests") }
          answers = all(records, "responses").map { |one| one["counts"].to_s.split(",").map(&:to_i) }
          times = all(records, "times").group_by { |one| one["kind"] }
          Sample.new(@clock.call, requests, sums(answers), times.transform_values { |parts| histogram(parts) })
        end

        def all(records, word) = records.filter_map { |kind, pairs| pairs if kind == word }

        # Adds up the pools' histograms.
        def histogram(parts)
          Histogram.new(sums(parts.group_by { |one| one["pool"] }.values.map { |one| Histogram.of(one).counts }))
        end

        def sums(lists)
          lists.each_with_object([]) { |list, sum| list.each_with_index { |count, at| sum[at] = sum[at].to_i + count } }
        end

        def rates(last, now)
          return {} unless last && now.at > last.at

          now.requests.to_h do |pid, count|
            before = last.requests[pid]
            [pid, before && ([count.to_i - before.to_i, 0].max / (now.at - last.at))]
          end
        end

        def classes(first, now)
          return {} unless now.at > first.at

          CLASSES.zip(now.answers).to_h do |name, count|
            before = first.answers[CLASSES.index(name)].to_i
            [name, (count.to_i - before) / (now.at - first.at)]
          end
        end

        def latency(first, now)
          now.times.to_h do |kind, histogram|
            recent = histogram - (first.times[kind] || Histogram.new)
            [kind, now.equal?(first) ? [nil, nil] : [recent.percentile(0.5), recent.percentile(0.99)]]
          end
        end

        def pids(records)
          records.filter_map do |word, pairs|
            pairs["pid"] if StatusReport::PROCESSES.include?(word) || word == "server"
          end
        end

        # Takes turns: those measured longest ago come first. A process that cannot be measured has ended.
        def measure(pids, everything)
          @memory = @memory.slice(*pids)
          deadline = @clock.call + BUDGET
          order = pids - @memory.keys + @memory.keys
          order.each do |pid|
            @memory.delete(pid)
            usage = @usage.call(pid)
            @memory[pid] = usage if usage
            break if !everything && @clock.call >= deadline
          end
        end
      end
    end
  end
end
