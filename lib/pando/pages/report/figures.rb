# frozen_string_literal: true

require "pando/counted"
require "pando/pages/census"

module Pando
  module Pages
    module Report
      # What all ways to show a census have in common: its figures, put together for people.
      #
      # @api private
      class Figures
        include Counted

        MIB = 1_048_576.0
        # Bytes of a request that are shown.
        NAME = 60

        # Requests that made pages private, as one row: the first and the last of them.
        Age = Struct.new(:from, :to, :causes, :kinds)
        # A request: its number, its name, what it and the collections in it made private.
        Request = Struct.new(:number, :name, :causes, :kinds, :faults, :compiled)

        # @return [Census]
        attr_reader :census

        def initialize(census)
          @census = census
        end

        def recording = census.recording
        def facts = recording.facts
        def mebibytes(pages) = pages * AddressSpace::PAGE / MIB
        def of_bytes(text) = text && format("%.1f MiB", text.to_i / MIB)

        # @return [Array<Symbol>] causes that made any page private
        def causes = Census::CAUSES.keys.select { |cause| census.causes[cause].positive? }
        # @return [Array<Symbol>] kinds that there are pages of
        def kinds = AddressSpace::KINDS.keys.select { |kind| census.private[kind].positive? || shared(kind).positive? }

        def shared(kind) = census.shared ? census.shared[kind] : 0

        # @return [Array<Request>] in the order in which they came; what came after the last one is the next's
        def requests
          @requests ||= begin
            found = cells_by_job
            (1..[recording.jobs.size, found.keys.max.to_i].max).map { |number| request(number, found[number] || []) }
          end
        end

        # @return [Array<Age>] what was so before, then requests in groups of 1, 1, 2, 4, 8, ...
        def ages
          before = Age.new(0, 0, *sums(cells_by_job.fetch(0, [])))
          groups = requests.group_by { |request| (request.number - 1).bit_length }.values
          [before, *groups.map { |group| age(group) }]
        end

        def title
          "Worker #{facts["slot"]} of generation #{facts["generation"]}, pid #{facts["pid"]}, " \
            "#{counted(facts["served"], "request")} after its fork"
        end

        # @return [String, nil] what the compiler says of itself
        def compiler
          return unless facts["jit"]

          "#{facts["jit"]} has #{of_bytes(facts["jit_code"])} of code and, in malloc's memory, " \
            "#{of_bytes(facts["jit_metadata"]) || "an unknown amount"} about it, shared or not"
        end

        # @return [String, nil] what was watched
        def watched
          return unless census.recorded?

          looked = recording.steps.sum(&:microseconds) / 1_000_000.0
          "#{counted(recording.jobs.size, "request")} in #{facts["seconds"]} s, with " \
            "#{collections("minor")} minor and #{counted(collections("major"), "major collection")}; " \
            "looking took #{format("%.2f", looked)} s"
        end

        private

        def collections(which) = facts["#{which}_gcs_after"].to_i - facts["#{which}_gcs"].to_i

        def cells_by_job = @cells_by_job ||= census.cells.group_by { |cell| recording.steps[cell.step].job }

        def request(number, cells)
          job = recording.jobs[number - 1]
          steps = steps_by_job.fetch(number, [])
          Request.new(number, job ? name(job) : "(after the last one)", *sums(cells), steps.sum(&:faults),
                      job&.fetch("compiled", nil).to_i)
        end

        def steps_by_job = @steps_by_job ||= recording.steps.group_by(&:job)

        def name(job) = job["request"].to_s.gsub(/[^[:print:]]/, "?")[0, NAME]

        def age(group)
          causes, kinds = %i[causes kinds].map do |what|
            group.map(&what).each_with_object(Hash.new(0)) { |one, sum| one.each { |key, pages| sum[key] += pages } }
          end
          Age.new(group.first.number, group.last.number, causes, kinds)
        end

        def sums(cells)
          %i[cause kind].map do |what|
            cells.each_with_object(Hash.new(0)) { |cell, sum| sum[cell[what]] += cell.pages }
          end
        end
      end
    end
  end
end
