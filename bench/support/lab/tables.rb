# frozen_string_literal: true

require "support/lab/comparison"
require "support/lab/outcomes"

module Bench
  module Lab
    # The tables of the report, each a title, a head and rows of text.
    class Tables
      MIB = 1024.0 * 1024

      def initialize(outcomes)
        @outcomes = outcomes
      end

      # @return [Array<Table>]
      def all
        @outcomes.group_by(&:conditions).flat_map do |conditions, outcomes|
          @place = conditions.to_s
          [Comparison.new(outcomes).table(@place), memory(outcomes), cpu(outcomes), latency(outcomes),
           reductions(outcomes), code(outcomes), kills(outcomes)].compact
        end
      end

      private

      def table(title, note, head, outcomes)
        Table.new("#{title}: #{@place}", note, ["", *head], outcomes.map { |each| [each.label, *yield(each)] })
      end

      def memory(outcomes)
        head = ["PSS mean", "PSS end", "USS mean", "USS end", "worker PSS", "worker USS", "reforks", "failed"]
        table("Memory, MiB", "of the whole tree: the mean over the run, and at its end", head, outcomes) do |each|
          [*%i[pss uss].flat_map { |field| [mib(each, field, :average), mib(each, field, :final)] },
           mib(each, :worker, :final), mib(each, :worker_uss, :final), whole(each[:reforks]), whole(each.failures)]
        end
      end

      def cpu(outcomes)
        head = ["whole run", "1st thousand", "from the 2nd on", "without idle", "idle, ms/s", "app p50", "app p99",
                "first 200", "of warm ancestors"]
        note = "of all processes; idle: in the others' turns; first 200: of reforked workers, p99 as a multiple of " \
               "steady state's at the same mix"
        table("CPU time, ms a request", note, head, outcomes) do |each|
          [ms(each[:cpu, :overall]), ms(each.runs.first.dig(:cpu, :thousands, 0)), ms(each[:cpu, :later]),
           ms(each[:cpu, :slices]), ms(each[:cpu, :idle]), ms(each[:app_cpu, :all, :p50]),
           ms(each[:app_cpu, :all, :p99]), times(each.first_p99_ratio(:all)), times(each.first_p99_ratio(:warm))]
        end
      end

      def latency(outcomes)
        head = ["p50", "p99", "p50 in", "p99 in", "p50 out", "p99 out", "rollouts, s", "fewest workers"]
        table("Latency, ms", "at the client, in and out of rollouts", head, outcomes) do |each|
          [*%i[all inside outside].flat_map { |part| %i[p50 p99].map { |field| ms(each[:latency, part, field]) } },
           number(each[:turnover_seconds], "%.1f"), whole(each.fewest_workers)]
        end
      end

      # As in article 003: the reduction compared with the same server without reforking.
      def reductions(outcomes)
        head = ["PSS mean", "PSS end", "latency mean", "latency p50", "latency p99", "CPU"]
        note = "against the same server without it; of Puma's fork_worker against Puma, preloaded"
        table("Reductions by reforking", note, head, outcomes) do |each|
          off = unreforked(each)
          [%i[memory pss average], %i[memory pss final], %i[latency all mean], %i[latency all p50], %i[latency all p99],
           %i[cpu overall]].map { |path| reduction(each, off, path) }
        end
      end

      def unreforked(outcome)
        base = outcome.server.start_with?("puma") ? "puma" : "#{outcome.server[/\A[a-z]+/]}-off"
        @outcomes.beside(outcome, base) unless base == outcome.server
      end

      def reduction(outcome, off, path)
        return "-" unless off && outcome[*path] && off[*path]

        format("%+.0f%%", 100.0 * ((outcome[*path] / off[*path]) - 1))
      end

      # As in article 003.
      def code(outcomes)
        head = ["code mean, MiB", "code end, MiB", "code at birth, MiB", "RSS, MiB", "PSS, MiB", "shared"]
        note = "code: of who answered, over all requests; shared: the part of its RSS"
        table("Compiled code and sharing of a worker", note, head, outcomes) do |each|
          shared = 1 - (each[:memory, :worker_uss, :final] / each[:memory, :worker_rss, :final])
          [*%i[average final at_birth].map { |field| number(each[:jit, field]&./(MIB), "%.1f") },
           mib(each, :worker_rss, :final), mib(each, :worker, :final), format("%.0f%%", 100 * shared)]
        end
      end

      # As in articles 000 and 003: the replacement of a worker that ran out of memory.
      def kills(outcomes)
        head = ["replaced", "requests", "CPU", "latency", "CPU of the very first, ms"]
        note = "the first 50 requests of who replaced it, as a multiple of steady state at the same mix"
        table("After kill -9 of a worker", note, head, outcomes) do |each|
          [whole(each[:kills, :killed]), whole(each[:kills, :requests]), times(each[:kills, :cpu]),
           times(each[:kills, :latency]), ms(each[:kills, :first_request])]
        end
      end

      def mib(outcome, *path) = number(outcome[:memory, *path]&./(MIB), "%.0f")
      def ms(seconds) = number(seconds&.*(1000), "%.2f")
      def times(ratio) = number(ratio, "%.2fx")
      def whole(value) = number(value, "%d")
      def number(value, format) = value ? format(format, value) : "-"
    end
  end
end
