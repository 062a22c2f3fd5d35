# frozen_string_literal: true

require "support/lab/servers"
require "support/lab/table"

module Bench
  module Lab
    # The memory and CPU time of each server next to those that it is compared with: Puma with its defaults, Puma with
    # jemalloc, and the list of Pitchfork's, with jemalloc, that takes the least memory.
    class Comparison
      AVERAGE = %i[memory pss average].freeze
      FINAL = %i[memory pss final].freeze
      CPU = %i[cpu overall].freeze
      MIB = 1024.0 * 1024
      HEAD = ["", "PSS mean", "PSS end", "of Puma's", "of Puma's, jemalloc", "of Pitchfork's best, jemalloc",
              "CPU a request, of Puma's"].freeze

      # @param outcomes [Array<Outcome>] under the same conditions
      def initialize(outcomes)
        @outcomes = outcomes
      end

      # @return [Outcome, nil]
      def puma = find("puma", "default")

      # @return [Outcome, nil]
      def puma_with_jemalloc = find("puma", "jemalloc")

      # @return [Outcome, nil] the best hand-made list
      def pitchfork = Servers::HAND_LISTS.filter_map { |name| find(name, "jemalloc") }.min_by { |each| each[*AVERAGE] }

      # @param place [String] the app and conditions, for the title
      # @return [Table, nil] nil: nothing to compare with was measured
      def table(place)
        return unless puma

        note = "PSS of the whole tree, MiB; its mean over the run as a multiple of the others'#{warning}"
        Table.new("Memory and CPU time: #{place}", note, HEAD, @outcomes.map { |each| row(each) })
      end

      # @return [Float, nil] a figure as a multiple of the other's
      def self.ratio(one, other, path)
        one[*path] / other[*path].to_f if other && one[*path] && other[*path]
      end

      private

      def find(server, allocator)
        @outcomes.find { |each| each.server == server && each.asked_allocator == allocator }
      end

      # A failed request takes less time and memory than one that succeeds.
      def warning
        failed = @outcomes.select { |each| each.failures.positive? }
        return if failed.empty?

        "; REQUESTS FAILED, so do not trust the figures of #{failed.map { |each| "#{each.label}: #{each.failures}" }
                                                                  .join(", ")}"
      end

      def row(each)
        rivals = [puma, puma_with_jemalloc, pitchfork]
        [each.label, *[AVERAGE, FINAL].map { |path| format("%.0f", each[*path] / MIB) },
         *rivals.map { |rival| times(each, rival, AVERAGE) }, times(each, puma, CPU)]
      end

      def times(one, other, path)
        ratio = Comparison.ratio(one, other, path)
        ratio ? format("%.2f", ratio) : "-"
      end
    end
  end
end
