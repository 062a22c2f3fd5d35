# frozen_string_literal: true

module Pando
  module Doctor
    class Report
      # For people in a terminal.
      class Text
        MIB = 1024.0 * 1024

        # @param report [Report] @param verbose [Boolean] with the notes about gems
        def initialize(report, verbose: false)
          @report = report
          @verbose = verbose
        end

        # @return [String]
        def to_s
          shown = @verbose ? @report.findings : @report.findings - @report.about_gems
          [heading, *shown.map { |one| finding(one) }, *folded, *limits, *undone, "", memory, "", *libraries, features,
           "", verdict].join("\n").concat("\n")
        end

        private

        def heading
          last = @report.generations.size - 1
          "pando doctor: #{@report.application[:rackup]} in the environment #{@report.application[:environment]}, " \
            "#{count(@report.requests.size, "request")}, #{count(last, "refork")}, #{@report.seconds.round(1)} s\n"
        end

        def finding(one)
          lines = ["#{one.severity}#{" (known)" if @report.known?(one)}: #{printable(one.message)} [#{one.kind}]"]
          lines << "    at #{printable(one.location)}" if one.location
          lines << "    #{printable(one.advice)}" if one.advice
          lines.join("\n")
        end

        # Nobody but a gem's author can change these.
        def folded
          number = @report.about_gems.size
          return [] if @verbose || number.zero?

          ["#{count(number, "note")} about what gems do inside; --verbose shows #{number == 1 ? "it" : "them"}"]
        end

        def limits
          @report.limits.map do |one|
            "limited: #{one.check} was looked for with #{one.requests} of #{count(one.of, "request")}, for it takes " \
              "long: of a shorter list (--requests) it is each that is answered, once for each path."
          end
        end

        def undone = @report.undone.map { |one| "could not be done: #{printable("#{one.check}: #{one.reason}")}" }

        def memory
          rows = @report.memory.map do |one|
            line("  #{one.moment}", one.title, [one.pss, one.uss, one.rss].map { |bytes| (bytes / MIB).round(1) })
          end
          [line("memory, MiB", "", %w[PSS own RSS]), *rows].join("\n")
        end

        def line(moment, title, figures)
          [moment.ljust(30), title.ljust(16), *figures.map { |figure| figure.to_s.rjust(8) }].join(" ")
        end

        def libraries
          rows = @report.libraries.map do |one|
            printable("  #{[*one.values_at(:name, :version), "#{one[:verdict].to_s.tr("_", " ")}:",
                            one[:note]].compact.join(" ")}")
          end
          rows.empty? ? [] : ["libraries", *rows, ""]
        end

        def features
          list = @report.features.map { |name, value| "#{name.to_s.tr("_", " ")}: #{shown(value)}" }
          "features\n#{list.map { |line| "  #{printable(line)}" }.join("\n")}"
        end

        def shown(value) = { true => "yes", false => "no", nil => "unknown" }.fetch(value, value)

        def verdict
          summary = @report.summary
          text = %i[errors warnings notes].map { |name| count(summary[name], name.to_s.delete_suffix("s")) }.join(", ")
          text += ", #{summary[:known]} known" if summary[:known].positive?
          text += "; could not be done: #{@report.undone.map(&:check).uniq.join(", ")}" unless @report.complete?
          return "#{count(summary[:failing], "finding")} to mend: #{text}" unless @report.clean?

          "#{@report.complete? ? "OK" : "INCOMPLETE"}: #{text}"
        end

        def count(number, noun) = "#{number} #{noun}#{"s" unless number == 1}"

        # What an application says must not steer a terminal.
        def printable(text) = text.to_s.scrub("?").gsub(/[[:cntrl:]]/) { |char| char.dump[1..-2] }
      end
    end
  end
end
