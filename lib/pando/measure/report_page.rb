# frozen_string_literal: true

require "pando/html_page"
require "pando/measure/report"
require "pando/table"

module Pando
  module Measure
    # A Report as a page for a browser, to show to others.
    #
    # @api private
    class ReportPage < Report
      # Each column of its tables but the first has numbers.
      STYLE = <<~CSS
        td + td, th + th { text-align: right; font-variant-numeric: tabular-nums; }
        polyline { fill: none; stroke: currentColor; stroke-width: 2.5; }
        .puma { color: var(--note); } .pando { color: var(--good); }
      CSS
      private_constant :STYLE

      # @return [String]
      def to_s
        HtmlPage.render(title: "pando measure: #{@result.application}", lead: lead, sections: sections, style: STYLE)
      end

      private

      def lead
        "<p class=\"verdict\">#{h(verdict || @result.broken || "Pando alone.")}</p>" \
          "<p>#{h(title)}.</p>#{list(setups)}<p>#{h(sent)}</p>"
      end

      def sections
        { "Memory under load" => Chart.new(curves).svg,
          "Measured" => "#{Table.new(*measured).html}<p>#{h(HOW)}</p>",
          "What more workers would take" => "#{Table.new(*projections).html if projected?}<p>#{h(projected)}</p>",
          "Notes" => list(@result.notes), "Requests that were left out" => list(left_out) }
      end

      def curves
        @sides.to_h { |side| [side.name, side.curve.map { |requests, bytes| [requests, bytes / MIB] }] }
      end

      def h(text) = HtmlPage.escape(text)
      def list(lines) = ("<ul>#{lines.map { |line| "<li>#{h(line)}</li>" }.join}</ul>" if lines.any?)

      # The memory of each server over the requests of a worker.
      class Chart < HtmlPage::Picture
        WIDTH = 860
        HEIGHT = 360
        # Edges of the grid.
        LEFT = 70
        RIGHT = 770
        TOP = 20
        BOTTOM = 310
        # Lines of the grid, at most, besides the one at zero.
        LINES = 5
        # Pixels between the names at the ends of two curves.
        APART = 14

        # @param curves [Hash{String => Array<Array(Float, Float)>}] requests of a worker and MiB, by server
        def initialize(curves)
          super()
          @curves = curves
          requests, memory = curves.values.flatten(1).transpose.map(&:max)
          @longest = [requests, 1].max
          @step = round_step(memory)
          @highest = [(memory / @step).ceil, 1].max * @step
        end

        # @return [String]
        def svg
          draw(WIDTH, HEIGHT, "memory of each server in MiB over the requests for each worker", [*grid, *axis, *curves])
        end

        private

        # 1, 2 or 5 times a power of ten.
        def round_step(most)
          least = [most.fdiv(LINES), 1].max
          power = 10**Math.log10(least).floor
          [1, 2, 5, 10].map { |factor| factor * power }.find { |step| step >= least }
        end

        def across(requests) = (LEFT + (requests.fdiv(@longest) * (RIGHT - LEFT))).round(1)
        def down(mib) = (BOTTOM - (mib.fdiv(@highest) * (BOTTOM - TOP))).round(1)

        def grid
          0.step(@highest, @step).flat_map do |mib|
            ["<path class=\"edge\" d=\"M#{LEFT} #{down(mib)} H#{RIGHT}\"/>",
             text(LEFT - 8, down(mib) + 4, mib, anchor: "end")]
          end
        end

        def axis
          numbers = 0.step(@longest, round_step(@longest)).map do |requests|
            text(across(requests), BOTTOM + 20, requests.to_i, anchor: "middle")
          end
          [*numbers, text((LEFT + RIGHT) / 2, HEIGHT - 8, "requests for each worker", anchor: "middle"),
           text(LEFT, TOP - 6, "MiB (PSS of all processes)")]
        end

        # From the highest end down, so that no name covers another.
        def curves
          name_at = 0
          @curves.sort_by { |_, points| -points.last.last }.map do |name, points|
            name_at = [down(points.last.last) + 4, name_at + APART].max
            places = points.map { |requests, mib| "#{across(requests)},#{down(mib)}" }
            "<g class=\"#{name.downcase}\"><polyline points=\"#{places.join(" ")}\"/>" \
              "#{text(RIGHT + 6, name_at, name)}</g>"
          end
        end
      end
    end
  end
end
