# frozen_string_literal: true

require "json"
require "pando/doctor/lazy_state"
require "pando/html_page"
require "pando/table"

module Pando
  module Doctor
    class Report
      # The report as a page for a browser, with pictures of the processes and their memory. All text is escaped: an
      # application may have written it.
      class Html
        LONGEST_NAME = 330 # pixels, of a process in the chart of memory

        def initialize(report)
          @report = report
        end

        def to_s
          HtmlPage.render(title: "pando doctor: #{@report.application[:rackup]}", lead: lead, sections: sections,
                          style: LazyStateSection::STYLE)
        end

        private

        def h(text) = HtmlPage.escape(text)

        def lead
          passed = @report.clean? && @report.complete?
          "<p class=\"verdict #{passed ? "clean" : "failing"}\">#{h(verdict)}</p>"
        end

        def verdict
          outcome = "Findings" unless @report.clean?
          outcome ||= @report.complete? ? "Clean" : "Incomplete"
          numbers = @report.summary.map { |name, number| "#{name} #{number}" }.join(", ")
          checks = @report.undone.map { |one| "#{one.check} (#{one.reason})" }
          undone = " Could not be done: #{checks.join("; ")}." if checks.any?
          "#{outcome}: #{numbers}.#{undone} #{@report.seconds.round(1)} s, Pando #{VERSION}."
        end

        def sections
          { "Findings" => findings, "Processes" => Generations.new(@report.generations).svg, "Memory" => memory,
            "Shared descriptors" => descriptors,
            "Threads where forks were made" => threads,
            "Lazily loaded state" => @report.lazy_state&.then { |figures| LazyStateSection.render(figures) },
            "Libraries" => Table.new([], libraries).html, "Requests" => requests,
            "Kernel and Ruby" => Table.new([], @report.features.to_a).html }
        end

        def findings
          marks = @report.findings.map { |one| [one.severity, ("known" if @report.known?(one))].compact }
          rows = @report.findings.zip(marks).map do |one, marked|
            what = HtmlPage::Markup.new("#{h(one.message)}<br><small>#{h(one.advice)}</small>")
            [marked, one.kind, what, HtmlPage.code(one.location)]
          end
          Table.new(%w[severity kind what where], rows).html(marks.map { |marked| marked.join(" ") }) || "<p>None.</p>"
        end

        def memory
          bars = @report.memory.map do |one|
            own = [one.pss, one.uss].min
            HtmlPage::Bars::Bar.new("#{one.moment}: #{one.title}", [[:own, own], [:part, one.pss - own]],
                                    format("%.1f MiB", one.pss / MIB))
          end
          caption = "orange: its own; grey: its part of what it shares (PSS)"
          HtmlPage::Bars.new("memory of each process", bars, left: LONGEST_NAME, caption: caption).svg
        end

        def descriptors
          rows = @report.descriptors.map { |one| [one[:what], HtmlPage.code(one[:location]), one[:processes]] }
          Table.new(%w[descriptor where processes], rows).html || "<p>None.</p>"
        end

        def threads
          rows = @report.threads.uniq.map do |one|
            [one[:process], "#{one[:name]}#{" (native)" if one[:native]}", HtmlPage.code(one[:location])]
          end
          Table.new(["process", "thread", "started at"], rows).html
        end

        def requests
          notes = [*@report.responses, *@report.limits.map { |one| "limited: #{one}" }]
          "#{notes.map { |one| "<p>#{h(one)}</p>" }.join}#{HtmlPage.code_list(@report.requests)}"
        end

        def libraries = @report.libraries.map { |one| one.values_at(:name, :version, :verdict, :note) }

        # A row for each generation: its mold, which is a child of a worker of the row above, and its workers.
        class Generations
          include HtmlPage::Picture

          WIDTH = 150
          HEIGHT = 34
          GAP = 30
          ROW = 84

          def initialize(generations)
            @generations = generations
          end

          def svg
            return if @generations.empty?

            columns = @generations.map { |one| one[:workers].size + 1 }.max
            shapes = @generations.each_with_index.flat_map { |one, row| generation(one, row) }
            draw(left(columns), top(@generations.size), "processes of each generation", shapes)
          end

          private

          def generation(one, row)
            mold = box(0, row, "mold", "mold gen #{one[:number]}", one[:mold])
            workers = one[:workers].each_with_index.flat_map do |worker, place|
              [edge(place, place + 1, row),
               box(place + 1, row, "worker", "worker #{worker[:slot]} gen #{one[:number]}", worker[:pid])]
            end
            [(promotion(row) unless row.zero?), *workers, mold].compact
          end

          def left(column) = 5 + (column * (WIDTH + GAP))
          def top(row) = 10 + (row * ROW)

          def box(column, row, kind, name, pid)
            label = text(left(column) + (WIDTH / 2), top(row) + 21, "#{name}, #{pid}", anchor: "middle")
            "<g class=\"box\">#{rectangle(kind, left(column), top(row), WIDTH, HEIGHT, radius: 6)}#{label}</g>"
          end

          def edge(from, to, row)
            middle = top(row) + (HEIGHT / 2)
            "<path class=\"edge\" d=\"M#{left(from) + WIDTH} #{middle} H#{left(to)}\"/>"
          end

          # From a worker down to the mold that was forked from it.
          def promotion(row)
            from = left(1) + (WIDTH / 2)
            to = left(0) + (WIDTH / 2)
            bottom = top(row - 1) + HEIGHT
            path = "M#{from} #{bottom} V#{bottom + 25} H#{to} V#{top(row)}"
            "<path class=\"edge\" stroke-dasharray=\"4\" d=\"#{path}\"/>"
          end
        end

        # The figures as a part of the doctor's page: tables, and a chart of the memory that requests make private.
        module LazyStateSection
          # The title of each table, its key in the figures, and its columns.
          TABLES = [
            ["What stays of each request", :requests,
             { request: "Request", objects: "Objects", bytes: "Bytes", code_bytes: "Bytes of code",
               inline_caches: "Inline caches filled", files: "Files loaded", compiled: "Texts compiled" }],
            ["Objects that stay, by line", :lines,
             { place: "Line", allocated: "Allocated at", classes: "Classes", held_by: "Held by", objects: "Objects",
               bytes: "Bytes" }],
            ["Objects that stay, by class", :classes, { class: "Class", objects: "Objects", bytes: "Bytes" }],
            ["Files loaded", :loaded,
             { path: "File", constant: "Constant", place: "Caused at", files: "Files", bytes: "Bytes",
               request: "Request" }],
            ["Text compiled", :compiled,
             { path: "Text", line: "Line", place: "Caused at", bytes: "Bytes", requests: "Requests" }],
            ["Inline caches filled, by file", :inline_caches, { file: "File", cache: "Cache", objects: "Count" }]
          ].freeze
          COLOURS = { ruby_heap: "#b3261e", malloc: "#4f6bb0", compiled_code: "#2e7d4f", library_data: "#8a6d00",
                      stack: "#666666" }.freeze
          STYLE = HtmlPage.colours(COLOURS)

          class << self
            # @param figures [Hash{Symbol => Object}] of a {LazyState::Result}; keys may have become Strings
            def render(figures)
              figures = JSON.parse(JSON.generate(figures), symbolize_names: true)
              tables = TABLES.map { |title, key, columns| table(title, figures[key], columns) }
              parts = [private_memory(figures[:pages] || []), *tables, calls(figures[:calls])]
              "<section class=\"lazy-state\">#{parts.join}</section>"
            end

            private

            def table(title, rows, columns)
              html = Table.new(columns.values, (rows || []).map { |row| row.values_at(*columns.keys) }).html
              html && "<h3>#{HtmlPage.escape(title)}</h3>#{html}"
            end

            def calls(calls)
              return unless calls

              table("Methods that only the first request calls (#{calls[:only_first]} of #{calls[:first_request]})",
                    calls[:methods], { method: "Method", place: "Line" })
            end

            def size(bytes) = LazyState::Thresholds.size(bytes)

            # @param rows [Array<Hash>] of {LazyState::PrivateMemory.observe}
            def private_memory(rows)
              names = COLOURS.keys.to_h { |use| [use, use.name.tr("_", " ")] }
              bars = rows.map do |row|
                parts = names.map { |use, name| [use, row[use].to_i, "#{name}: #{size(row[use].to_i)}"] }
                name = row[:after].is_a?(Integer) ? "request #{row[:after]}" : row[:after]
                HtmlPage::Bars::Bar.new(name, parts, size(row[:total]))
              end
              chart = HtmlPage::Bars.new("private memory after each request", bars, left: 90).svg
              chart && "<h3>Private memory after each request</h3>#{HtmlPage.legend(names)}#{chart}"
            end
          end
        end
      end
    end
  end
end
