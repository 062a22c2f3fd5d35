# frozen_string_literal: true

require "pando/code_bound"
require "pando/mebibytes"

module Pando
  module Doctor
    class Report
      # What became, in the application's processes, of things that a kernel and a Ruby may or may not do: seen
      # once the last generation had served. Shown beside what they can do.
      #
      # @api private
      class Measured
        include Mebibytes

        # @param evidence [Evidence]
        def initialize(evidence)
          @evidence = evidence
          @last = evidence.memory.select { |one| one.moment == evidence.memory.last.moment }
        end

        # @return [Hash{Symbol => String}]
        def to_h = { huge_pages_in_use: huge, merged_pages: merged, yjit_code: code }.compact

        private

        def huge
          return if @last.empty? || @last.any? { |one| one.huge.nil? }

          "#{mebibytes(sum(:huge))} of #{mebibytes(sum(:rss))}, #{@last.size} processes"
        end

        # A negative gain: looking for them takes more memory than they save.
        def merged
          return if @last.empty? || @last.any? { |one| one.merged.nil? }

          gain = "; they save #{mebibytes(sum(:gain))}" if @last.all?(&:gain)
          "#{mebibytes(sum(:merged))}#{gain}, so far"
        end

        def sum(name) = @last.sum { |one| one[name].to_i }

        # The workers are gone by now: one has said it itself.
        def code
          told = @evidence.snapshots(:served).filter_map { |fact| fact[:code_region] }
          used, bound = told.max_by(&:first)
          CodeBound.new(used, bound, 0).to_s if used
        end
      end
    end
  end
end
