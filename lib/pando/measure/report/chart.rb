# frozen_string_literal: true

require "pando/html_page"

module Pando
  module Measure
    module Report
      # Draws the memory of each server over the requests of a worker, as an SVG.
      #
      # @api private
      class Chart
        WIDTH = 860
        HEIGHT = 360
        LEFT = 70
        RIGHT = 90
        TOP = 20
        BOTTOM = 50
        MIB = 1_048_576.0
        LINES = 5
        # Pixels between the names at the ends of two curves.
        APART = 14
        private_constant :WIDTH, :HEIGHT, :LEFT, :RIGHT, :TOP, :BOTTOM, :MIB, :LINES, :APART

        # @param sides [Array<Side>]
        def initialize(sides)
          @sides = sides
          @widest = [sides.flat_map { |side| side.curve.map(&:first) }.max, 1].max
          @step = round_step(sides.flat_map { |side| side.curve.map(&:last) }.max / MIB / LINES)
        end

        # @return [String]
        def svg
          "<svg viewBox=\"0 0 #{WIDTH} #{HEIGHT}\" width=\"#{WIDTH}\" role=\"img\" " \
            "aria-label=\"Memory of each server in MiB over the requests for each worker\">" \
            "#{[*grid, *axis, *@sides.map { |side| curve(side) }, *names].join("\n")}</svg>"
        end

        private

        def top = @step * (LINES + 1)

        # 1, 2 or 5 times a power of ten.
        def round_step(raw)
          power = 10**Math.log10([raw, 1].max).floor
          [1, 2, 5, 10].map { |factor| factor * power }.find { |step| step >= raw }
        end

        def across(requests) = (LEFT + (requests.fdiv(@widest) * (WIDTH - LEFT - RIGHT))).round(1)
        def down(mib) = (HEIGHT - BOTTOM - (mib.fdiv(top) * (HEIGHT - TOP - BOTTOM))).round(1)

        def grid
          (0..(LINES + 1)).flat_map do |number|
            height = down(number * @step)
            ["<path class=\"edge\" d=\"M#{LEFT} #{height} H#{WIDTH - RIGHT}\"/>",
             text(LEFT - 8, height + 4, number * @step, anchor: "end")]
          end
        end

        def axis
          [*(0..4).map { |quarter| @widest * quarter / 4 }
                  .map { |requests| text(across(requests), HEIGHT - BOTTOM + 20, requests.round, anchor: "middle") },
           text((WIDTH + LEFT - RIGHT) / 2, HEIGHT - 8, "requests for each worker", anchor: "middle"),
           text(LEFT, TOP - 6, "MiB (PSS of all processes)", anchor: "start")]
        end

        def curve(side)
          points = side.curve.map { |requests, bytes| "#{across(requests)},#{down(bytes / MIB)}" }
          "<polyline class=\"#{kind(side)}\" points=\"#{points.join(" ")}\"/>"
        end

        # From the top down, so that no name covers another.
        def names
          lowest = 0
          @sides.sort_by { |side| -side.final }.map do |side|
            lowest = [down(side.final / MIB) + 4, lowest + APART].max
            text(WIDTH - RIGHT + 6, lowest, side.name, anchor: "start", kind: kind(side))
          end
        end

        def kind(side) = side.name == "Pando" ? "pando" : "other"

        def text(left, height, words, anchor:, kind: nil)
          "<text#{" class=\"#{kind}\"" if kind} x=\"#{left}\" y=\"#{height}\" text-anchor=\"#{anchor}\">" \
            "#{HtmlPage.escape(words)}</text>"
        end
      end
    end
  end
end
