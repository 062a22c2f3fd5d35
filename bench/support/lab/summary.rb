# frozen_string_literal: true

require "support/lab/figures"

module Bench
  module Lab
    # The figures of one run.
    class Summary
      FIRST = 200 # requests of a process that count as its first ones
      NEXT = 400 # requests of a process after those
      NEWBORN = 50 # requests of a killed worker's replacement that count
      THOUSAND = 1000 # requests per worker: a step of the CPU time curve

      PAUSED = 1.0 # seconds of the others' turns, at least, for a figure of them

      def initialize(samples:, idle:, sent:, failures:, journal:, watch:, measured:, replacements:, workers:)
        @samples = samples
        @idle = idle
        @sent = sent
        @failures = failures
        @journal = journal
        @watch = watch
        @measured = measured
        @replacements = replacements
        @workers = workers
      end

      def to_h
        { requests: @measured, failures: @failures.size, failed: @failures.first(5), seconds: seconds,
          memory: memory, cpu: cpu, latency: latency, app_cpu: app_cpu, first: first, jit: jit, kills: kills,
          reforks: @watch.reforks, turnovers: turnovers.size, turnover_seconds: turnovers.sum { |from, to| to - from },
          refork_places: refork_places, fewest_workers: @watch.fewest, curve: curve, warmth: warmth, raw: raw }
      end

      private

      def seconds = @samples.last[:at] - @samples.first[:at]
      def turnovers = @turnovers ||= @watch.turnovers

      # Without the moments at which there was nothing to measure, as when all workers had just been lost.
      def points(field) = @samples.filter_map { |sample| [sample[:requests], sample[field]] if sample[field] }

      def memory
        %i[pss uss worker worker_uss worker_rss].to_h do |field|
          values = points(field)
          [field, { average: Figures.average(values), final: values.last&.last, boot: values.first&.last }]
        end
      end

      # Seconds per request: in the whole run, from the second thousand requests per worker on, in each thousand, and
      # without what the server took in the others' turns. `idle` is that for each second of those.
      def cpu
        points = points(:cpu)
        step = THOUSAND * @workers
        starts = (0...@measured).step(step).to_a
        { overall: Figures.slope(points), later: (Figures.slope(points, from: step) if @measured > step),
          thousands: starts.map { |from| Figures.slope(points, from: from, to: [from + step, @measured].min) },
          idle: (@idle[:cpu] / @idle[:seconds] if @idle[:seconds] >= PAUSED),
          slices: ((points.last.last - @idle[:cpu]) / @measured if @measured.positive?) }
      end

      # Latency at the client, while processes came and went and while they did not.
      def latency
        answered = @sent.first(@measured).select(&:seconds)
        inside, outside = answered.partition do |sent|
          Figures.within?(turnovers, sent.began_at, sent.began_at + sent.seconds)
        end
        { all: spread(answered.map(&:seconds)), inside: spread(inside.map(&:seconds)),
          outside: spread(outside.map(&:seconds)) }
      end

      # The load's requests that the meters have recorded, with their targets.
      def served
        @served ||= @journal.requests.select { |each| each.sequence.between?(1, @measured) }
                            .map { |each| [each, @sent[each.sequence - 1]] }
      end

      def app_cpu
        inside, outside = served.partition { |_, sent| Figures.within?(turnovers, sent.began_at, sent.began_at) }
        { all: spread(served.map { |each, _| each.cpu }), inside: spread(inside.map { |each, _| each.cpu }),
          outside: spread(outside.map { |each, _| each.cpu }) }
      end

      # The first requests of reforked workers, and steady state: the other requests in the run's second half. `warm`
      # are the requests of workers whose ancestors had served a thousand.
      def first
        fresh = served.select { |each, _| first?(each) }
        { all: against_steady(fresh), warm: against_steady(fresh.select { |each, _| warm?(each) }) }
      end

      def against_steady(fresh)
        sample = by_target(fresh)
        { requests: sample.size, **spread(sample.map(&:last)), steady: steady.size,
          p50_ratio: Figures.ratio_at_equal_mix(sample, steady, 0.5),
          p99_ratio: Figures.ratio_at_equal_mix(sample, steady, 0.99),
          mean_ratio: Figures.mean_ratio_at_equal_mix(sample, steady) }
      end

      def steady
        @steady ||= by_target(served.select { |each, _| steady?(each) })
      end

      def steady?(each) = each.number > FIRST && each.sequence > @measured / 2

      def by_target(served) = served.map { |each, sent| [sent.target, each.cpu] }

      # For percentiles over several runs: the target, CPU time in microseconds and process of each request of the load
      # (nil: the meters did not record it), how many requests each process's ancestors had served, which requests were
      # the first ones of a reforked worker, and those after them.
      def raw
        { targets: @sent.first(@measured).map(&:target), cpu: each_request { |each| (each.cpu * 1e6).round },
          process: each_request { |each| index_of(each.process) }, ancestors: @journal.processes.map(&:ancestors),
          first: places { |each| first?(each) }, warm: places { |each| first?(each) && warm?(each) },
          next: places { |each| next?(each) && warm?(each) }, steady: places { |each| steady?(each) } }
      end

      def each_request
        served.each_with_object(Array.new(@measured)) { |(each, _), all| all[each.sequence - 1] = yield(each) }
      end

      def index_of(process)
        @indices ||= @journal.processes.each_with_index.with_object({}.compare_by_identity) do |(each, index), indices|
          indices[each] = index
        end
        @indices.fetch(process)
      end

      def places = served.filter_map { |each, _| each.sequence - 1 if yield(each) }
      def first?(each) = each.process.reforked? && each.number <= FIRST
      def next?(each) = each.process.reforked? && each.number.between?(FIRST + 1, FIRST + NEXT)
      def warm?(each) = each.process.ancestors >= THOUSAND

      # Bytes of compiled code in the answering process: the average over all requests, and of the last processes.
      def jit
        codes = served.map { |each, _| code_at(each.process, each.number) }
        last = @journal.processes.select { |process| @watch.workers.include?(process.pid) }
        { average: codes.empty? ? nil : codes.sum / codes.size,
          final: Figures.percentile(last.filter_map { |process| process.warmth.last&.fetch(:code) }, 0.5),
          at_birth: Figures.percentile(born.filter_map { |process| process.warmth.first&.fetch(:code) }, 0.5) }
      end

      def born = @journal.processes.select(&:reforked?)

      def code_at(process, number)
        (process.warmth.reverse_each.find { |note| note[:number] <= number } || process.warmth.first)&.fetch(:code) || 0
      end

      # The workers that replaced killed ones: CPU time and latency of their first requests, as a multiple of steady
      # state at the same mix.
      def kills
        newborn = @journal.requests.select do |each|
          each.sequence > @measured && each.number <= NEWBORN && @replacements.include?(each.process.pid)
        end
        pairs = newborn.map { |each| [each, @sent[each.sequence - 1]] }
        { killed: @replacements.size, requests: pairs.size, first_request: first_of(newborn),
          cpu: Figures.mean_ratio_at_equal_mix(by_target(pairs), steady),
          latency: Figures.mean_ratio_at_equal_mix(latencies(pairs), steady_latencies) }
      end

      def first_of(newborn)
        Figures.percentile(newborn.select { |each| each.number == 1 }.map(&:cpu), 0.5)
      end

      def steady_latencies = latencies(served.select { |each, _| steady?(each) })

      def latencies(pairs) = pairs.filter_map { |_, sent| [sent.target, sent.seconds] if sent.seconds }

      def spread(values)
        { requests: values.size, mean: values.empty? ? nil : values.sum / values.size,
          p50: Figures.percentile(values, 0.5), p99: Figures.percentile(values, 0.99), worst: values.max }
      end

      # The number of requests sent when each generation was first seen.
      def refork_places
        @watch.sights.flat_map { |sight| sight.generations.map { |generation| [generation, sight.at] } }
              .reject { |generation, _| generation.zero? }.uniq(&:first)
              .map { |_, at| @sent.bsearch_index { |sent| sent.began_at >= at } || @sent.size }
      end

      def curve
        began_at = @samples.first[:at]
        @samples.map { |sample| sample.merge(at: sample[:at] - began_at) }
      end

      def middle(notes, field) = Figures.percentile(notes.map { |note| note[field] }, 0.5)

      # The warmth of the workers by age: medians of compiled code and collections.
      def warmth
        @journal.processes.flat_map(&:warmth).group_by { |note| note[:number] }.sort.map do |number, notes|
          { number: number, processes: notes.size,
            **%i[code compiled minor major].to_h { |field| [field, middle(notes, field)] } }
        end
      end
    end
  end
end
