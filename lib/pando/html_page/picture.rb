# frozen_string_literal: true

require "pando/html_page"

module Pando
  module HtmlPage
    # The base of a report's pictures, which are drawn as inline SVG. Colours are CSS classes.
    #
    # @abstract
    class Picture
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
    class Bars < Picture
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
        super()
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
