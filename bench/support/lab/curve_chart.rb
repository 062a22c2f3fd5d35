# frozen_string_literal: true

require "cgi/escape"

module Bench
  module Lab
    # Draws curves over the requests of a worker (SVG 1.1).
    class CurveChart
      # @!attribute label [String]
      # @!attribute points [Array<Array(Numeric, Numeric)>]
      # @!attribute marks [Array<Numeric>] x values of reforks
      Line = Struct.new(:label, :points, :marks)

      COLOURS = %w[#1b7f5c #4c78a8 #d1495b #f2a541 #7b5ea7 #4aa5a0 #8c6d46 #b0b7bf #e377c2 #2f4b7c #a05195
                   #665191].freeze
      WIDTH = 860
      HEIGHT = 300
      LEFT = 56
      RIGHT = WIDTH + LEFT + 20
      TOP = 44
      ROW = 18
      STEPS = 5

      # @param lines [Array<Line>]
      # @param title [String]
      def initialize(lines, title:)
        @lines = lines.reject { |line| line.points.empty? }
        @title = title
      end

      def to_s
        <<~SVG
          <svg xmlns="http://www.w3.org/2000/svg" width="#{RIGHT}" height="#{bottom}" viewBox="0 0 #{RIGHT} #{bottom}">
          <g font-family="sans-serif" font-size="12" fill="#222">
          <rect width="100%" height="100%" fill="#fff"/>
          #{text(LEFT, 24, @title, size: 16)}
          #{grid.join("\n")}
          #{@lines.each_with_index.map { |line, index| drawn(line, index) }.join("\n")}
          </g>
          </svg>
        SVG
      end

      private

      def bottom = TOP + HEIGHT + 44 + (((@lines.size + 1) / 2) * ROW)
      def widest = @widest ||= [@lines.flat_map { |line| line.points.map(&:first) }.max.to_f, 1.0].max
      def tallest = @tallest ||= [@lines.flat_map { |line| line.points.map(&:last) }.max.to_f * 1.05, 1e-9].max

      def grid
        (0..STEPS).flat_map do |step|
          share = step / STEPS.to_f
          level = TOP + (HEIGHT * (1 - share))
          [%(<line x1="#{LEFT}" y1="#{level.round(1)}" x2="#{LEFT + WIDTH}" y2="#{level.round(1)}" stroke="#ddd"/>),
           text(LEFT - 6, level + 4, figure(tallest * share), anchor: "end"),
           text(LEFT + (WIDTH * share), TOP + HEIGHT + 18, figure(widest * share), anchor: "middle")]
        end
      end

      def figure(value) = value < 10 ? format("%.2g", value) : value.round.to_s

      def drawn(line, index)
        colour = COLOURS[index % COLOURS.size]
        path = line.points.map { |x, y| "#{across(x)},#{up(y)}" }.join(" ")
        row = TOP + HEIGHT + 42 + ((index / 2) * ROW)
        left = LEFT + ((index % 2) * WIDTH / 2)
        [%(<polyline points="#{path}" fill="none" stroke="#{colour}" stroke-width="1.8"/>),
         *line.marks.map { |x| %(<circle cx="#{across(x)}" cy="#{TOP + HEIGHT}" r="2.5" fill="#{colour}"/>) },
         %(<rect x="#{left}" y="#{row - 9}" width="16" height="4" fill="#{colour}"/>),
         text(left + 22, row - 3, line.label)].join("\n")
      end

      def across(value) = (LEFT + (WIDTH * value / widest)).round(1)
      def up(value) = (TOP + (HEIGHT * (1 - (value / tallest)))).round(1)

      def text(left, baseline, words, anchor: "start", size: 12)
        %(<text x="#{left.round(1)}" y="#{baseline.round(1)}" text-anchor="#{anchor}" font-size="#{size}">) +
          "#{CGI.escapeHTML(words)}</text>"
      end
    end
  end
end
