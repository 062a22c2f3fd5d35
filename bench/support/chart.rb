# frozen_string_literal: true

require "cgi/escape"
require "support/cow_run"

module Bench
  # The results as a picture (SVG 1.1): the whole server at the top, one worker at the bottom; a group of bars for each
  # server, a bar for each moment.
  class Chart
    MIB = 1024.0 * 1024
    COLOURS = { boot: "#b8c4ce", warmed: "#d1495b", reforked: "#66a182", more: "#2e6f57" }.freeze
    PANELS = { pss: "Whole server, PSS in MiB", worker: "One worker, PSS in MiB" }.freeze
    BAR = 44
    GAP = 48
    LEFT = 32
    HEIGHT = 200 # of the tallest bar
    PANEL = HEIGHT + 110
    TOP = 76

    def initialize(results, title:)
      @results = results
      @title = title
    end

    def to_s
      <<~SVG
        <svg xmlns="http://www.w3.org/2000/svg" width="#{width}" height="#{height}" viewBox="0 0 #{width} #{height}">
        <g font-family="sans-serif" font-size="13" fill="#222">
        <rect width="#{width}" height="#{height}" fill="#fff"/>
        #{text(LEFT, 28, @title, size: 17, weight: "bold")}
        #{legend}
        #{PANELS.each_with_index.map { |(field, name), index| panel(field, name, TOP + (index * PANEL)) }.join("\n")}
        </g>
        </svg>
      SVG
    end

    private

    def group = (BAR * CowRun::PHASES.size) + GAP
    def width = [(LEFT * 2) + (group * @results.size), 640].max
    def height = TOP + (PANEL * PANELS.size)

    def legend
      CowRun::PHASES.each_with_index.map do |(phase, name), index|
        left = LEFT + (index * 140)
        "#{bar(left, 44, 12, 12, phase)}#{text(left + 18, 55, name)}"
      end.join("\n")
    end

    def panel(field, name, top)
      ground = top + HEIGHT + 50
      groups = @results.each_with_index.map { |result, index| bars(result, field, LEFT + (index * group), ground) }
      line = %(<line x1="#{LEFT}" y1="#{ground}" x2="#{width - LEFT}" y2="#{ground}" stroke="#888"/>)
      [text(LEFT, top + 18, name, weight: "bold"), *groups, line].join("\n")
    end

    def bars(result, field, left, ground)
      drawn = CowRun::PHASES.keys.each_with_index.map do |phase, index|
        memory = result.phases[phase]
        memory ? column(memory[field], left + (index * BAR), ground, phase, field) : ""
      end
      label = text(left + (BAR * CowRun::PHASES.size / 2), ground + 20, result.label, anchor: "middle", size: 14)
      [*drawn, label].join("\n")
    end

    def column(bytes, left, ground, phase, field)
      tall = (bytes * HEIGHT / largest(field).to_f).round
      number = format("%.0f", bytes / MIB)
      "#{bar(left + 2, ground - tall, BAR - 4, tall, phase)}" \
        "#{text(left + (BAR / 2), ground - tall - 5, number, anchor: "middle")}"
    end

    def largest(field)
      @results.flat_map { |result| result.phases.values.compact.map { |memory| memory[field] } }.max
    end

    def bar(left, top, wide, tall, phase)
      %(<rect x="#{left}" y="#{top}" width="#{wide}" height="#{tall}" fill="#{COLOURS.fetch(phase)}"/>)
    end

    def text(left, baseline, words, anchor: "start", size: 13, weight: "normal")
      %(<text x="#{left}" y="#{baseline}" text-anchor="#{anchor}" font-size="#{size}" font-weight="#{weight}">) +
        "#{CGI.escapeHTML(words)}</text>"
    end
  end
end
