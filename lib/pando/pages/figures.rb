# frozen_string_literal: true

require "pando/pages/private_pages"
require "pando/wording"

module Pando
  module Pages
    # The figures of a report, from the private pages and the recording. {#to_h} is the JSON report, in bytes.
    class Figures
      include Wording

      MIB = 1_048_576.0
      NAME = 60 # characters of a request's name
      WHOLE = %w[pid slot generation served minor_gcs major_gcs minor_gcs_after major_gcs_after private pss jit_code
                 jit_metadata].freeze

      # A request, and the pages that it and the garbage collections in it made private.
      Request = Struct.new(:number, :name, :causes, :kinds, :faults, :compiled) do
        def pages = causes.values.sum
      end

      # Consecutive requests: the first and the last number, and their pages by cause.
      Group = Struct.new(:from, :to, :causes) do
        def pages = causes.values.sum
        def name = to.zero? ? "before" : [from, to].uniq.join(" to ")
      end

      attr_reader :pages

      def initialize(pages)
        @pages = pages
      end

      def recording = pages.recording
      def facts = recording.facts
      def mebibytes(count) = count && (count * AddressSpace::PAGE / MIB)

      # @return [Array<Symbol>] causes that made any page private
      def causes = PrivatePages::CAUSES.keys.select { |cause| pages.causes[cause].positive? }

      # @return [Array<Symbol>] kinds with any page, private or shared
      def kinds
        AddressSpace::KINDS.keys.select { |kind| pages.private[kind].positive? || pages.shared&.fetch(kind, 0)&.positive? }
      end

      # @return [Array<Request>] in the order of their arrival; pages that became private after the last one come last
      def requests
        @requests ||= begin
          cells = cells_by_job
          (1..[recording.jobs.size, cells.keys.max.to_i].max).map { |number| request(number, cells[number] || []) }
        end
      end

      # @return [Array<Group>] what was private before, then requests in groups of 1, 1, 2, 4, 8, ...
      def groups
        before = Group.new(0, 0, sums(cells_by_job.fetch(0, []), :cause))
        [before, *requests.group_by { |request| (request.number - 1).bit_length }.values.map { |group| group(group) }]
      end

      def title
        "Worker #{facts["slot"]} of generation #{facts["generation"]}, pid #{facts["pid"]}, " \
          "#{counted(facts["served"], "request")} after its fork"
      end

      def compiler
        return unless facts["jit"]

        "#{facts["jit"]} has #{size("jit_code")} of code and, in malloc's memory, " \
          "#{size("jit_metadata") || "an unknown amount"} about it, shared or not"
      end

      # @return [String, nil] the extent of the recording
      def watched
        return unless pages.recorded?

        looked = recording.steps.sum(&:microseconds) / 1_000_000.0
        "#{counted(recording.jobs.size, "request")} in #{facts["seconds"]} s, with " \
          "#{collections("minor")} minor and #{counted(collections("major"), "major collection")}; " \
          "looking took #{format("%.2f", looked)} s"
      end

      def size(fact) = facts[fact] && format("%.1f MiB", facts[fact].to_i / MIB)

      def to_h
        both = bytes(pages.by_kind_and_cause).map { |(kind, cause), size| { kind: kind, cause: cause, bytes: size } }
        { worker: facts.to_h { |name, text| [name, value(name, text)] },
          **%i[private copied shared causes].to_h { |name| [name, bytes(pages.public_send(name))] },
          kinds_and_causes: both, requests: requests.map { |one| request_to_h(one) } }
      end

      private

      def request_to_h(one)
        { number: one.number, request: one.name, causes: bytes(one.causes), kinds: bytes(one.kinds),
          faults: one.faults, compiled: one.compiled }
      end

      def bytes(counts) = counts&.transform_values { |count| count * AddressSpace::PAGE }

      def value(name, text)
        case name
        when *WHOLE then Integer(text, 10, exception: false)
        when "seconds" then Float(text, exception: false)
        else text
        end
      end

      def collections(which) = facts["#{which}_gcs_after"].to_i - facts["#{which}_gcs"].to_i
      def cells_by_job = @cells_by_job ||= pages.cells.group_by { |cell| recording.steps[cell.step].job }
      def steps_by_job = @steps_by_job ||= recording.steps.group_by(&:job)

      def request(number, cells)
        job = recording.jobs[number - 1]
        name = job ? job["request"].to_s.gsub(/[^[:print:]]/, "?")[0, NAME] : "(after the last one)"
        Request.new(number, name, sums(cells, :cause), sums(cells, :kind),
                    steps_by_job.fetch(number, []).sum(&:faults), job&.fetch("compiled", nil).to_i)
      end

      def group(requests)
        causes = requests.each_with_object(Hash.new(0)) do |one, sum|
          one.causes.each { |cause, count| sum[cause] += count }
        end
        Group.new(requests.first.number, requests.last.number, causes)
      end

      def sums(cells, what)
        cells.each_with_object(Hash.new(0)) { |cell, sum| sum[cell[what]] += cell.pages }
      end
    end
  end
end
