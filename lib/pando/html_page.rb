# frozen_string_literal: true

require "cgi/escape"

module Pando
  # A report of a command as a self-contained HTML page: it fetches nothing and runs no script. The caller escapes what
  # it inserts. No server process loads this file.
  #
  # @api private
  module HtmlPage
    POLICY = "default-src 'none'; style-src 'unsafe-inline'"

    # Light or dark, depending on the reader's settings.
    STYLE = <<~CSS
      :root { color-scheme: light dark; --error: #c62828; --warning: #b26a00; --note: #55707f; --good: #2e7d32;
              --line: #8888; --mold: #7e57c2; --worker: #0288d1; --own: #ef6c00; --shared: #90a4ae; }
      body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 72rem; padding: 0 1rem; }
      h1 { font-size: 1.5rem; } h2 { font-size: 1.15rem; margin-top: 2rem; }
      table { border-collapse: collapse; width: 100%; } th { text-align: left; }
      td, th { border-bottom: 1px solid var(--line); padding: .35rem .6rem .35rem 0; vertical-align: top; }
      code { font: .9em ui-monospace, monospace; overflow-wrap: anywhere; }
      .verdict { font-weight: 600; } .clean { color: var(--good); } .failing { color: var(--error); }
      tr.error td:first-child { color: var(--error); font-weight: 600; }
      tr.warning td:first-child { color: var(--warning); font-weight: 600; }
      tr.note td:first-child { color: var(--note); } tr.known { opacity: .6; }
      svg { max-width: 100%; height: auto; } svg text { font: 12px system-ui, sans-serif; fill: currentColor; }
      .mold { fill: var(--mold); } .worker { fill: var(--worker); } .box text { fill: #fff; }
      .edge { stroke: var(--line); stroke-width: 1.5; fill: none; }
      td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; }
      .own { fill: var(--own); } .part { fill: var(--shared); }
    CSS

    # A table cell that is already HTML.
    Markup = Struct.new(:html)

    def self.escape(text) = CGI.escapeHTML(text.to_s.scrub("?"))

    # @param sections [Hash{String => String, nil}] HTML by title; nil: the section is left out
    # @param style [String] CSS in addition to {STYLE}
    def self.render(title:, lead:, sections:, style: "")
      <<~HTML
        <!DOCTYPE html>
        <html lang="en">
        <head>
        <meta charset="utf-8">
        <meta name="viewport" content="width=device-width, initial-scale=1">
        <meta http-equiv="Content-Security-Policy" content="#{POLICY}">
        <title>#{escape(title)}</title>
        <style>#{STYLE}#{style}</style>
        </head>
        <body>
        <h1>#{escape(title)}</h1>
        #{lead}
        #{sections.map { |name, content| "<section><h2>#{escape(name)}</h2>#{content}</section>" if content }.join("\n")}
        </body>
        </html>
      HTML
    end

    # @return [String, nil] nil without entries
    def self.code_list(entries)
      "<ul>#{entries.map { |one| "<li>#{code(one).html}</li>" }.join}</ul>" if entries.any?
    end

    def self.code(text) = Markup.new(("<code>#{escape(text)}</code>" if text))

    # @param colours [Hash{Symbol => String}] by CSS class
    # @return [String] the style of these classes, for pictures and legends
    def self.colours(colours)
      colours.map { |name, colour| ".#{name} { fill: #{colour}; stroke: #{colour}; color: #{colour}; }\n" }.join
    end

    # @param names [Hash{Symbol => String}] by CSS class
    def self.legend(names)
      marks = names.map { |name, text| "<span class=\"#{name}\">&#9632;</span> #{escape(text)}" }
      "<p>#{marks.join(" &#160; ")}</p>"
    end

    # For a report's pictures, which are drawn as inline SVG. Colours are CSS classes.
    module Picture
      private

      def draw(width, height, label, shapes)
        "<svg viewBox=\"0 0 #{width} #{height}\" width=\"#{width}\" role=\"img\" " \
          "aria-label=\"#{HtmlPage.escape(label)}\">#{shapes.join}</svg>"
      end

      def text(left, top, words, anchor: nil)
        "<text x=\"#{left.round(1)}\" y=\"#{top}\"#{" text-anchor=\"#{anchor}\"" if anchor}>" \
          "#{HtmlPage.escape(words)}</text>"
      end

      # @param title [String, nil] shown when the mouse points at it
      def rectangle(name, left, top, width, height, title: nil, radius: nil)
        "<rect class=\"#{name}\" x=\"#{left.round(2)}\" y=\"#{top.round(2)}\" width=\"#{width.round(2)}\" " \
          "height=\"#{height.round(2)}\"#{" rx=\"#{radius}\"" if radius}>#{title(title)}</rect>"
      end

      def title(words) = ("<title>#{HtmlPage.escape(words)}</title>" if words)
    end

    # A chart of horizontal bars, each stacked of parts.
    class Bars
      include Picture

      # `parts` is an Array of [CSS class, size, title or nil], `label` the text behind the bar.
      Bar = Struct.new(:name, :parts, :label) do
        def size = parts.sum { |_, size| size }
      end

      BAR = 420
      ROW = 22
      SUM = 110

      # @param label [String] of the picture, for screen readers
      # @param bars [Array<Bar>] @param left [Integer] pixels for their names
      # @param caption [String, nil]
      def initialize(label, bars, left:, caption: nil)
        @label = label
        @bars = bars
        @left = left
        @caption = caption
      end

      # @return [String, nil] nil without anything to show
      def svg
        largest = @bars.map(&:size).max
        return if largest.nil? || largest.zero?

        @scale = BAR / largest.to_f
        bottom = @bars.size * ROW
        shapes = @bars.each_with_index.flat_map { |bar, place| bar(bar, place * ROW) }
        shapes << text(0, bottom + ROW, @caption) if @caption
        draw(@left + BAR + SUM, bottom + (@caption ? 30 : 0), @label, shapes)
      end

      private

      def bar(bar, top)
        left = @left
        parts = bar.parts.map do |name, size, title|
          width = size * @scale
          rectangle(name, (left += width) - width, top + 3, width, ROW - 6, title: title)
        end
        [text(0, top + 15, bar.name), *parts, text(left + 6, top + 15, bar.label)]
      end
    end
  end
end
