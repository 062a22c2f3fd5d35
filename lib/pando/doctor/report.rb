# frozen_string_literal: true

require "json"
require "pando/code_bound"
require "pando/doctor/subject/wire"
require "pando/errors"
require "pando/fork_safety/finding"
require "pando/table"
require "pando/version"
require "pando/wording"

module Pando
  module Doctor
    # A file of known findings, kept with the application. A finding is recognized by its fingerprint, which has no line
    # number, so that an edit above it does not make it new.
    class Baseline
      SCHEMA = 1

      # @return [Baseline] without any finding
      def self.empty = new([])

      # @param path [String]
      # @return [Baseline]
      # @raise [UsageError]
      def self.read(path)
        content = JSON.parse(File.read(path, encoding: Encoding::UTF_8))
        list = content["findings"] if content.is_a?(Hash) && content["schema"] == SCHEMA
        raise UsageError, "--baseline: #{path} was not written by pando doctor" unless list.is_a?(Array)

        new(list.filter_map { |one| one["fingerprint"] if one.is_a?(Hash) })
      rescue JSON::ParserError
        raise UsageError, "--baseline: #{path} is not JSON"
      rescue SystemCallError => e
        raise UsageError, "--baseline: #{e.message}. Write it with --write-baseline"
      end

      # @param path [String] @param findings [Array<ForkSafety::Finding>]
      # @raise [UsageError]
      def self.write(path, findings)
        known = findings.reject { |one| one.severity == :note }.map do |one|
          { fingerprint: one.fingerprint, kind: one.kind, message: one.message }
        end
        File.write(path, "#{JSON.pretty_generate(schema: SCHEMA, findings: known.uniq { |one| one[:fingerprint] })}\n")
      rescue SystemCallError => e
        raise UsageError, "--write-baseline: #{e.message}"
      end

      def initialize(fingerprints)
        @fingerprints = fingerprints
      end

      # @param finding [ForkSafety::Finding]
      def include?(finding) = @fingerprints.include?(finding.fingerprint)
    end

    # The result of an examination: the findings, gravest first, and the figures. Owned by the command. {#to_h} is
    # described in docs/doctor.md; Text and Html write the same for people.
    class Report
      # The version of {#to_h}; it rises when a program that reads the old one would fail.
      SCHEMA = 1
      # The severities that make a run fail, by the value of `--fail-on`.
      FAILING = { "error" => %i[error], "warning" => %i[error warning] }.freeze
      MIB = 1024.0 * 1024

      # @return [Array<ForkSafety::Finding>] those that the baseline does not have come first
      attr_reader :findings
      attr_reader :requests, :seconds

      # @param findings [Array<ForkSafety::Finding>] @param requests [Array<Request>]
      # @param baseline [Baseline] known findings
      # @param fail_on [String] the least severity that fails, a key of {FAILING}
      def initialize(evidence, config, findings, requests, seconds, baseline: Baseline.empty, fail_on: "error")
        @evidence = evidence
        @config = config
        @given = findings
        @requests = requests
        @seconds = seconds
        @baseline = baseline
        @fail_on = fail_on
        @inside_gems = {}.compare_by_identity
        @findings = arrange(unite(findings))
      end

      # @param baseline [Baseline] @param fail_on [String] a key of {FAILING}
      # @return [Report] the same, judged by these
      def against(baseline, fail_on: @fail_on)
        self.class.new(@evidence, @config, @given, @requests, @seconds, baseline: baseline, fail_on: fail_on)
      end

      # @return [Boolean] whether the baseline has it, so that it does not fail
      def known?(finding) = @baseline.include?(finding)

      # @return [Array<ForkSafety::Finding>] that fail
      def failing = findings.select { |one| FAILING.fetch(@fail_on).include?(one.severity) && !known?(one) }
      def clean? = failing.empty?

      # @return [Boolean] whether all checks were made
      def complete? = undone.empty?

      # @return [Array<ForkSafety::Finding>] notes about what gems do inside, which the user cannot change
      def about_gems = findings.select { |one| @inside_gems.key?(one) }

      # @return [Hash{Symbol => Integer}]
      def summary
        counts = ForkSafety::Finding::SEVERITIES.to_h { |name| [:"#{name}s", findings.count { |one| one.severity == name }] }
        counts.merge(known: findings.count { |one| known?(one) }, failing: failing.size, undone: undone.size)
      end

      # @return [Hash{Symbol => Object}] values that JSON knows
      def to_h
        { schema: SCHEMA, pando: VERSION, application: application, seconds: seconds.round(2),
          requests: requests.map(&:to_s), statuses: statuses, generations: generations, summary: summary,
          findings: findings.map { |one| judged(one) },
          memory: memory.map(&:to_h), descriptors: descriptors, threads: threads, libraries: libraries,
          features: features, lazy_state: lazy_state, undone: undone.map(&:to_h),
          limits: limits.map(&:to_h) }
      end

      def application
        Subject::Wire.clean(rackup: @config.short(@config.rackup), directory: @config.directory,
                            environment: @config.environment)
      end

      def generations
        @evidence.generations.map do |one|
          workers = one.workers.map { |worker| { slot: worker.slot, pid: worker.pid } }
          { number: one.number, mold: one.mold.pid, workers: workers }
        end
      end

      def memory = @evidence.memory

      # Shared descriptors of all generations, with the processes that have them.
      def descriptors
        @evidence.generations.flat_map do |generation|
          generation.shared.map do |shared|
            { generation: generation.number, number: shared.open.number, what: shared.open.link,
              location: local(shared.location(@evidence)), processes: shared.holders.map(&:title) }
          end
        end
      end

      # Threads where forks were made.
      def threads
        @evidence.snapshots(:fork).flat_map do |fact|
          process = [fact[:role], fact[:slot], "gen #{fact[:generation]}"].compact.join(" ")
          fact[:threads].map { |one| { process: process, name: one[:name], location: local(one[:location]) } } +
            fact[:natives].map { |name| { process: process, name: name, native: true } }
        end
      end

      def libraries = @evidence.libraries.to_h[:entries] || []

      # What kernel and Ruby offer, and how much YJIT had compiled once the last generation had served. The workers have
      # ended by now: both are their own reports.
      def features
        offered = @evidence.facts.find { |fact| fact.key?(:features) }&.fetch(:features) || {}
        used, bound = @evidence.snapshots(:served).filter_map { |fact| fact[:code_region] }.max_by(&:first)
        used ? offered.merge(yjit_code: CodeBound.new(used, bound, 0).to_s) : offered
      end

      def lazy_state = @evidence.lazy_state&.fetch(:figures, nil)

      # The checks that could not be made, without which a clean report is no pass.
      # @return [Array<Evidence::Undone>]
      def undone
        error = @evidence.libraries.to_h[:error]
        error ? @evidence.undone + [Evidence::Undone.new("libraries", error)] : @evidence.undone
      end

      # @return [Array<Evidence::Limited, Evidence::Unread, Evidence::NoRoot>] what was done with some of the requests
      #   only
      def limits = @evidence.limits

      # @return [Array<String>] lines about the responses, if not all requests got a 2xx
      def responses = @evidence.responses.notes

      # @return [Hash{Integer => Integer}] requests by the status of their first response
      def statuses = @evidence.responses.statuses

      # @param format [String] text, json or html
      # @param verbose [Boolean] for text: with all notes
      # @return [String]
      def write(format, verbose: false)
        case format
        when "json" then "#{JSON.pretty_generate(to_h)}\n"
        when "text" then Text.new(self, verbose: verbose).to_s
        when "html"
          require "pando/doctor/report/html"
          Html.new(self).to_s
        end
      end

      private

      def judged(finding) = finding.to_h.merge(fingerprint: finding.fingerprint, known: known?(finding))

      # If several findings of a kind name one line, the gravest stays, and of equals the first, which has more details.
      def unite(findings)
        localized = findings.map { |one| localize(one).tap { |same| @inside_gems[same] = true if about_gem?(one) } }
        located = localized.select(&:location).map(&:kind)
        gravest_first(localized)
          .uniq { |one| [one.kind, one.location || one.subject] }
          .reject { |one| one.location.nil? && located.include?(one.kind) && one.severity != :error }
      end

      def arrange(findings)
        findings.sort_by { |one| [known?(one) ? 1 : 0, rank(one), one.kind.to_s, one.location.to_s] }
      end

      def gravest_first(findings) = findings.sort_by.with_index { |one, at| [rank(one), at] }
      def rank(one) = ForkSafety::Finding::SEVERITIES.index(one.severity)

      def about_gem?(one)
        return false unless one.severity == :note

        one.kind == :library_unknown || !(one.location.nil? || @evidence.own?(one.location))
      end

      def localize(one)
        local(one.location) == one.location ? one : one.with(location: local(one.location))
      end

      # Relative to the application's folder or a gem's, so that it is the same on each machine.
      def local(location)
        return unless location

        folder = gem_folders.find { |path| location.start_with?(path) }
        folder ? location.delete_prefix(folder) : @evidence.local(location)
      end

      def gem_folders
        @gem_folders ||= Gem.path.flat_map { |path| ["#{path}/gems/", "#{path}/bundler/gems/"] }
      end

      # The report for a terminal.
      class Text
        include Wording

        ANSWERS = { true => "yes", false => "no", nil => "unknown" }.freeze
        # Notes of one kind that are shown: Rails keeps something for each template of an app.
        ALIKE = 3

        # @param report [Report] @param verbose [Boolean] with all notes
        def initialize(report, verbose: false)
          @report = report
          @verbose = verbose
        end

        def to_s
          [heading, *findings, *responses, *limits, *undone,
           "", *memory, "", *libraries, *features, "", verdict].join("\n").concat("\n")
        end

        private

        def heading
          reforks = @report.generations.size - 1
          "pando doctor: #{@report.application[:rackup]} in the environment #{@report.application[:environment]}, " \
            "#{counted(@report.requests.size, "request")}, #{counted(reforks, "refork")}, " \
            "#{@report.seconds.round(1)} s\n"
        end

        # Only a gem's author can change what is noted about a gem.
        def findings
          return @report.findings.map { |one| finding(one) } if @verbose

          gems = @report.about_gems
          further = further_notes(@report.findings - gems)
          shown = @report.findings - gems - further.values.flatten
          [*shown.map { |one| finding(one) }, *further.map { |kind, notes| hidden(notes, "more note", " [#{kind}]") },
           *(hidden(gems, "note", " about what gems do inside") if gems.any?)]
        end

        # @return [Hash{Symbol => Array<Finding>}] the notes of each kind beyond those that are shown
        def further_notes(findings)
          notes = findings.select { |one| one.severity == :note }.group_by(&:kind)
          notes.transform_values { |some| some.drop(ALIKE) }.reject { |_, more| more.empty? }
        end

        def hidden(notes, noun, about)
          "#{counted(notes.size, noun)}#{about}; --verbose shows #{notes.one? ? "it" : "them"}"
        end

        def finding(one)
          lines = ["#{one.severity}#{" (known)" if @report.known?(one)}: #{Table.printable(one.message)} [#{one.kind}]"]
          lines << "    at #{Table.printable(one.location)}" if one.location
          lines << "    #{Table.printable(one.advice)}" if one.advice
          lines.join("\n")
        end

        def responses = @report.responses.map { |one| Table.printable(one) }

        def limits = @report.limits.map { |one| "limited: #{one}" }

        def undone = @report.undone.map { |one| "could not be done: #{Table.printable("#{one.check}: #{one.reason}")}" }

        def memory
          rows = @report.memory.map do |one|
            ["  #{one.moment}", one.title, *[one.pss, one.uss, one.rss].map { |bytes| bytes / MIB }]
          end
          Table.new(["memory, MiB", "", "PSS", "own", "RSS"], rows).lines
        end

        def libraries
          rows = @report.libraries.map do |one|
            words = [*one.values_at(:name, :version), "#{one[:verdict].to_s.tr("_", " ")}:", one[:note]]
            Table.printable("  #{words.compact.join(" ")}")
          end
          rows.empty? ? [] : ["libraries", *rows, ""]
        end

        def features
          ["features", *@report.features.map do |name, value|
            Table.printable("  #{name.to_s.tr("_", " ")}: #{ANSWERS.fetch(value, value)}")
          end]
        end

        def verdict
          summary = @report.summary
          text = %w[error warning note].map { |name| counted(summary[:"#{name}s"], name) }.join(", ")
          text += ", #{summary[:known]} known" if summary[:known].positive?
          text += "; could not be done: #{@report.undone.map(&:check).uniq.join(", ")}" unless @report.complete?
          return "#{counted(summary[:failing], "finding")} to fix: #{text}" unless @report.clean?

          "#{@report.complete? ? "OK" : "INCOMPLETE"}: #{text}"
        end
      end
    end
  end
end
