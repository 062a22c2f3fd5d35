# frozen_string_literal: true

module Pando
  module Doctor
    class Report
      class Html
        # The pictures of the page, drawn as inline SVG.
        #
        # @api private
        module Pictures
          MIB = 1024.0 * 1024

          # What pictures have in common.
          class Picture
            def initialize(report)
              @report = report
            end

            private

            def h(text) = HtmlPage.escape(text)

            def draw(width, height, label, shapes)
              "<svg viewBox=\"0 0 #{width} #{height}\" width=\"#{width}\" role=\"img\" aria-label=\"#{h(label)}\">" \
                "#{shapes.join}</svg>"
            end

            def text(left, top, words, anchor: "start")
              "<text x=\"#{left}\" y=\"#{top}\" text-anchor=\"#{anchor}\">#{h(words)}</text>"
            end

            def shorten(words, length) = words.size > length ? "…#{words[(1 - length)..]}" : words
          end

          # Who was forked from whom: a row for each generation, its mold the child of a worker of
          # the row above.
          class Tree < Picture
            WIDTH = 150
            HEIGHT = 34
            GAP = 30
            ROW = 84

            def svg
              generations = @report.generations
              return if generations.empty?

              columns = generations.map { |one| one[:workers].size + 1 }.max
              shapes = generations.each_with_index.flat_map { |one, row| generation(one, row) }
              draw(left(columns), top(generations.size), "processes of each generation", shapes)
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
              "<g class=\"box\"><rect class=\"#{kind}\" x=\"#{left(column)}\" y=\"#{top(row)}\" width=\"#{WIDTH}\" " \
                "height=\"#{HEIGHT}\" rx=\"6\"/>#{label}</g>"
            end

            def edge(from, to, row)
              middle = top(row) + (HEIGHT / 2)
              "<path class=\"edge\" d=\"M#{left(from) + WIDTH} #{middle} H#{left(to)}\"/>"
            end

            # From a worker down to the mold that it became the parent of.
            def promotion(row)
              from = left(1) + (WIDTH / 2)
              to = left(0) + (WIDTH / 2)
              bottom = top(row - 1) + HEIGHT
              path = "M#{from} #{bottom} V#{bottom + 25} H#{to} V#{top(row)}"
              "<path class=\"edge\" stroke-dasharray=\"4\" d=\"#{path}\"/>"
            end
          end

          # Bars of each process's share: what is its own, and its part of what is shared.
          class Memory < Picture
            LABEL = 330
            BAR = 420
            ROW = 22

            def svg
              rows = @report.memory
              largest = rows.map(&:pss).max
              return if largest.nil? || largest.zero?

              shapes = rows.each_with_index.flat_map { |one, place| bar(one, place, largest) }
              caption = text(0, (rows.size * ROW) + 22, "orange: its own; grey: its part of what it shares (PSS)")
              draw(LABEL + BAR + 110, (rows.size * ROW) + 30, "memory of each process", [*shapes, caption])
            end

            private

            def bar(one, place, largest)
              top = place * ROW
              all, own = [one.pss, [one.uss, one.pss].min].map { |bytes| BAR * bytes / largest }
              [text(0, top + 15, "#{one.moment}: #{one.title}"),
               rectangle("part", top, all), rectangle("own", top, own),
               text(LABEL + all + 6, top + 15, format("%.1f MiB", one.pss / MIB))]
            end

            def rectangle(kind, top, width)
              place = "x=\"#{LABEL}\" y=\"#{top + 3}\" width=\"#{width.round(1)}\" height=\"#{ROW - 6}\""
              "<rect class=\"#{kind}\" #{place}/>"
            end
          end

          # A row for each descriptor, a dot for each process that has it.
          class Sharing < Picture
            LABEL = 430
            COLUMN = 120
            ROW = 22
            LONGEST = 62

            def svg
              rows = @report.descriptors
              return "<p>None.</p>" if rows.empty?

              processes = rows.flat_map { |one| one[:processes] }.uniq
              heads = processes.each_with_index.map { |name, place| text(center(place), 14, name, anchor: "middle") }
              shapes = rows.each_with_index.flat_map { |one, place| row(one, place, processes) }
              draw(LABEL + (processes.size * COLUMN), ((rows.size + 1) * ROW) + 10, "descriptors and who has them",
                   heads + shapes)
            end

            private

            def center(place) = LABEL + (place * COLUMN) + (COLUMN / 2)

            def row(one, place, processes)
              top = (place + 1) * ROW
              name = shorten([one[:what], one[:location]].compact.join(" "), LONGEST)
              dots = one[:processes].map do |process|
                "<circle class=\"dot\" cx=\"#{center(processes.index(process))}\" cy=\"#{top + 10}\" r=\"6\"/>"
              end
              [text(0, top + 14, name), *dots]
            end
          end
        end
      end
    end
  end
end
