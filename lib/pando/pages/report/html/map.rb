# frozen_string_literal: true

require "pando/pages/census"

module Pando
  module Pages
    module Report
      class Html
        # The memory itself: a line for each 2 MiB in which the worker has pages of its own, in the order of their
        # addresses and apart by use; a mark for each of these pages, in the colour of what made it private. Between
        # the marks is what it shares, or nothing.
        #
        # @api private
        class Map
          PAGES = 512 # a line
          WIDTH = 2 # of a page
          HEIGHT = 5 # of a line
          LABEL = 24
          # Lines of one use that are drawn.
          LINES = 1000

          def initialize(census)
            @census = census
          end

          # @return [String]
          def svg
            top = 0
            shapes = AddressSpace::KINDS.flat_map do |kind, name|
              lines = lines(kind)
              next [] if lines.empty?

              drawn = lines.first(LINES)
              label = text(top + 16, lines.size, name)
              top += LABEL
              [label, *drawn.flat_map { |_, runs| line(runs, (top += HEIGHT) - HEIGHT) }]
            end
            "<svg viewBox=\"0 0 #{PAGES * WIDTH} #{top + 4}\" width=\"#{PAGES * WIDTH}\" role=\"img\" " \
              "aria-label=\"private pages by address\">#{shapes.join}</svg>"
          end

          private

          # @return [Array<Array(Integer, Array)>] the line's number, and its parts: page in the line, how many, cause
          def lines(kind)
            found = Hash.new { |lines, number| lines[number] = [] }
            @census.runs.each do |first, count, of, cause,|
              next unless of == kind

              while count.positive?
                place = first % PAGES
                fits = [count, PAGES - place].min
                found[first / PAGES] << [place, fits, cause]
                first += fits
                count -= fits
              end
            end
            found.sort
          end

          def line(runs, top)
            runs.group_by(&:last).map do |cause, parts|
              marks = parts.map { |place, count,| "M#{place * WIDTH} #{top}h#{count * WIDTH}" }.join
              "<path class=\"#{cause}\" stroke-width=\"#{HEIGHT - 1}\" d=\"#{marks}\"/>"
            end
          end

          def text(top, lines, name)
            more = ", #{lines - LINES} lines more are not drawn" if lines > LINES
            "<text x=\"0\" y=\"#{top}\">#{HtmlPage.escape("#{name}, a line for 2 MiB#{more}")}</text>"
          end
        end
      end
    end
  end
end
