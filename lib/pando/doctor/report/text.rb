# frozen_string_literal: true

require "pando/table"
require "pando/wording"

module Pando
  module Doctor
    class Report
      # The report for a terminal.
      #
      # @api private
      class Text
        include Wording

        ANSWERS = { true => "yes", false => "no", nil => "unknown" }.freeze

        # @param report [Report] @param verbose [Boolean] with the notes about gems
        def initialize(report, verbose: false)
          @report = report
          @verbose = verbose
        end

        # @return [String]
        def to_s
          [heading, *findings, *limits, *undone, "", *memory, "", *libraries, *features, "", verdict]
            .join("\n").concat("\n")
        end

        private

        def printable(text) = Table.printable(text)

        def heading
          reforks = @report.generations.size - 1
          "pando doctor: #{@report.application[:rackup]} in the environment #{@report.application[:environment]}, " \
            "#{counted(@report.requests.size, "request")}, #{counted(reforks, "refork")}, " \
            "#{@report.seconds.round(1)} s\n"
        end

        # Only a gem's author can change what is noted about a gem.
        def findings
          return @report.findings.map { |one| finding(one) } if @verbose || (hidden = @report.about_gems).empty?

          shown = (@report.findings - hidden).map { |one| finding(one) }
          [*shown, "#{counted(hidden.size, "note")} about what gems do inside; --verbose shows " \
                   "#{hidden.one? ? "it" : "them"}"]
        end

        def finding(one)
          lines = ["#{one.severity}#{" (known)" if @report.known?(one)}: #{printable(one.message)} [#{one.kind}]"]
          lines << "    at #{printable(one.location)}" if one.location
          lines << "    #{printable(one.advice)}" if one.advice
          lines.join("\n")
        end

        def limits
          @report.limits.map do |one|
            "limited: #{one.check} was measured with #{one.requests} of #{counted(one.of, "request")}, because it " \
              "takes long. Of a shorter list (--requests) it uses each answered request, once for each path."
          end
        end

        def undone = @report.undone.map { |one| "could not be done: #{printable("#{one.check}: #{one.reason}")}" }

        def memory
          rows = @report.memory.map do |one|
            ["  #{one.moment}", one.title, *[one.pss, one.uss, one.rss].map { |bytes| bytes / MIB }]
          end
          Table.new(["memory, MiB", "", "PSS", "own", "RSS"], rows).lines
        end

        def libraries
          rows = @report.libraries.map do |one|
            printable("  #{[*one.values_at(:name, :version), "#{one[:verdict].to_s.tr("_", " ")}:",
                            one[:note]].compact.join(" ")}")
          end
          rows.empty? ? [] : ["libraries", *rows, ""]
        end

        def features
          ["features", *@report.features.map do |name, value|
            printable("  #{name.to_s.tr("_", " ")}: #{ANSWERS.fetch(value, value)}")
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
