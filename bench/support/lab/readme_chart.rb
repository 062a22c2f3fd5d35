# frozen_string_literal: true

require "cgi/escape"
require "support/lab/figures"

module Bench
  module Lab
    # Memory over the requests of a worker, as a picture to embed in other pages (SVG 1.1). It is self-contained, its
    # background is the page's, and its colours are readable on white and on black. Each line has its name and its mean
    # at its end.
    class ReadmeChart
      # @!attribute label [String]
      # @!attribute family [String] lines of one family have the same colour
      # @!attribute jemalloc [Boolean] false: the line is dashed
      # @!attribute points [Array<Array(Numeric, Numeric)>]
      Line = Struct.new(:label, :family, :jemalloc, :points)

      COLOURS = { "pando" => "#2da44e", "puma" => "#e5534b", "pitchfork" => "#4f8fea" }.freeze
      GREY = "#7d8590"
      FONT = "-apple-system, 'Segoe UI', Helvetica, Arial, sans-serif"
      WIDTH = 560 # of the plot
      HEIGHT = 320
      LEFT = 56
      TOP = 56
      NAMES = 290 # to the right of the plot
      ROW = 18 # between two names, at least
      STEPS = 4

      # @param lines [Array<Line>]
      # @param title [String]
      def initialize(lines, title:)
        @lines = lines.reject { |line| line.points.empty? }.sort_by { |line| -line.points.last.last }
        @title = title
      end

      def to_s
        <<~SVG
          <svg xmlns="http://www.w3.org/2000/svg" width="#{right}" height="#{bottom}" viewBox="0 0 #{right} #{bottom}">
          <g font-family="#{FONT}" font-size="13" fill="#{GREY}">
          #{text(0, 18, @title, size: 16, weight: 600)}
          #{text(LEFT - 8, TOP - 16, "MiB", anchor: "end")}
          #{text(LEFT + WIDTH + 18, TOP - 16, "mean, MiB")}
          #{grid.join("\n")}
          #{@lines.zip(rows).map { |line, row| drawn(line, row) }.join("\n")}
          #{text(LEFT + WIDTH, bottom - 8, "requests of a worker", anchor: "end")}
          </g>
          </svg>
        SVG
      end

      private

      def right = LEFT + WIDTH + NAMES
      def bottom = [TOP + HEIGHT + 48, rows.last.to_f + 60].max.round
      def widest = @widest ||= [@lines.flat_map { |line| line.points.map(&:first) }.max.to_f, 1.0].max

      # Rounds up above all points.
      def tallest
        @tallest ||= begin
          highest = [@lines.flat_map { |line| line.points.map(&:last) }.max.to_f, 1.0].max
          step = 10**Math.log10(highest / STEPS).floor
          step *= [1, 1.5, 2, 2.5, 3, 4, 5, 7.5, 10].find { |factor| factor * step * STEPS >= highest }
          step * STEPS
        end
      end

      # Places the names next to the ends of their lines so that they do not overlap.
      def rows
        @rows ||= @lines.each_with_object([]) do |line, rows|
          wanted = up(line.points.last.last) + 4
          rows << [wanted, rows.empty? ? TOP : rows.last + ROW].max
        end
      end

      def grid
        (0..STEPS).flat_map do |step|
          level = TOP + (HEIGHT * (1 - (step / STEPS.to_f)))
          across = LEFT + (WIDTH * step / STEPS.to_f)
          [%(<path d="M#{LEFT} #{level.round(1)}h#{WIDTH}" stroke="#{GREY}" stroke-opacity="0.3"/>),
           text(LEFT - 8, level + 4, figure(tallest * step / STEPS), anchor: "end"),
           text(across, TOP + HEIGHT + 20, figure(widest * step / STEPS), anchor: "middle")]
        end
      end

      def figure(value) = value.round.to_s.gsub(/(?<=\d)(?=(\d{3})+\z)/, ",")

      def drawn(line, row)
        colour = COLOURS.fetch(line.family, GREY)
        points = line.points.map { |x, y| "#{across(x)},#{up(y)}" }
        dashes = line.jemalloc || line.family == "pando" ? "" : %( stroke-dasharray="5 4")
        wide = line.family == "pando" ? 3 : 1.8
        end_x = LEFT + WIDTH
        [%(<polyline points="#{points.join(" ")}" fill="none" stroke="#{colour}" stroke-width="#{wide}"#{dashes}/>),
         %(<path d="M#{points.last}L#{end_x + 14},#{(row - 4).round(1)}" stroke="#{colour}" stroke-opacity="0.5"/>),
         text(end_x + 18, row, "#{line.label}: #{figure(mean(line))}", colour: colour)].join("\n")
      end

      def mean(line) = Figures.average(line.points)
      def across(value) = (LEFT + (WIDTH * value / widest)).round(1)
      def up(value) = (TOP + (HEIGHT * (1 - (value / tallest)))).round(1)

      def text(left, baseline, words, anchor: "start", size: 13, weight: 400, colour: GREY)
        %(<text x="#{left.round(1)}" y="#{baseline.round(1)}" text-anchor="#{anchor}" font-size="#{size}" ) +
          %(font-weight="#{weight}" fill="#{colour}">#{CGI.escapeHTML(words)}</text>)
      end
    end
  end
end
