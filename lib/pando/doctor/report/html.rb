# frozen_string_literal: true

require "pando/doctor/report/html/pictures"
require "pando/html_page"

module Pando
  module Doctor
    class Report
      # One page for a browser: the findings, and pictures of the processes, their memory and what
      # they share. Whatever an application says is escaped.
      class Html
        def initialize(report)
          @report = report
        end

        # @return [String]
        def to_s = HtmlPage.render(title: title, lead: lead, sections: sections)

        private

        def h(text) = HtmlPage.escape(text)
        def title = "pando doctor: #{@report.application[:rackup]}"

        def sections
          { "Findings" => findings, "Processes" => Pictures::Tree.new(@report).svg,
            "Memory" => Pictures::Memory.new(@report).svg, "Shared descriptors" => Pictures::Sharing.new(@report).svg,
            "Threads where forks were made" => threads, "Lazily loaded state" => lazy_state, "Libraries" => libraries,
            "Requests" => list(@report.requests), "Kernel and Ruby" => features }
        end

        def lead
          passed = @report.clean? && @report.complete?
          "<p class=\"verdict #{passed ? "clean" : "failing"}\">#{h(verdict)}</p>"
        end

        def verdict
          numbers = @report.summary.map { |name, number| "#{name} #{number}" }.join(", ")
          checks = @report.undone.map { |one| "#{one.check} (#{one.reason})" }
          undone = " Could not be done: #{checks.join("; ")}." if checks.any?
          "#{word}: #{numbers}.#{undone} #{@report.seconds.round(1)} s, Pando #{VERSION}."
        end

        def word
          return "Findings" unless @report.clean?

          @report.complete? ? "Clean" : "Incomplete"
        end

        def findings
          return "<p>None.</p>" if @report.findings.empty?

          "<table><tr><th>severity</th><th>kind</th><th>what</th><th>where</th></tr>" \
            "#{@report.findings.map { |one| row(one) }.join}</table>"
        end

        def row(one)
          marks = [one.severity, ("known" if @report.known?(one))].compact
          "<tr class=\"#{marks.join(" ")}\"><td>#{h(marks.join(", "))}</td><td>#{h(one.kind)}</td>" \
            "<td>#{h(one.message)}<br><small>#{h(one.advice)}</small></td><td><code>#{h(one.location)}</code></td></tr>"
        end

        def threads
          rows = @report.threads.uniq.map do |one|
            "<tr><td>#{h(one[:process])}</td><td>#{h(one[:name])}#{" (native)" if one[:native]}</td>" \
              "<td><code>#{h(one[:location])}</code></td></tr>"
          end
          rows.empty? ? nil : "<table><tr><th>process</th><th>thread</th><th>started at</th></tr>#{rows.join}</table>"
        end

        def libraries
          rows = @report.libraries.map do |one|
            "<tr>#{one.values_at(:name, :version, :verdict, :note).map { |value| "<td>#{h(value)}</td>" }.join}</tr>"
          end
          rows.empty? ? nil : "<table>#{rows.join}</table>"
        end

        # That part of the doctor draws its own.
        def lazy_state
          figures = @report.lazy_state
          return unless figures

          require "pando/doctor/lazy_state/html"
          LazyState::Html.render(figures)
        end

        def features
          rows = @report.features.map { |name, value| "<tr><td>#{h(name)}</td><td>#{h(value)}</td></tr>" }
          "<table>#{rows.join}</table>"
        end

        def list(entries) = "<ul>#{entries.map { |one| "<li><code>#{h(one)}</code></li>" }.join}</ul>"
      end
    end
  end
end
