# frozen_string_literal: true

require "pando/html_page/picture"
require "pando/pages/private_pages"

module Pando
  module Pages
    # A bar for each request, stacked by cause: the pages that it made private and that still are.
    class Timeline < HtmlPage::Picture
      WIDTH = 1000
      HEIGHT = 240
      LEFT = 70
      WIDEST = 40

      # @param figures [Figures]
      def initialize(figures)
        super()
        @figures = figures
      end

      # @return [String]
      def svg
        requests = @figures.requests
        @most = [requests.map(&:pages).max.to_i, 1].max
        @step = [(WIDTH - LEFT).to_f / requests.size, WIDEST].min
        draw(WIDTH, HEIGHT + 24, "memory that requests made private", [*scale, *requests.map { |one| bar(one) }])
      end

      private

      def bar(request)
        left = LEFT + ((request.number - 1) * @step)
        bottom = HEIGHT
        parts = PrivatePages::CAUSES.keys.filter_map do |cause|
          height = request.causes[cause] * (HEIGHT - 10) / @most.to_f
          next if height.zero?

          rectangle(cause, left, bottom -= height, [@step - 1, @step * 0.8].max, height)
        end
        "<g>#{title(summary(request))}#{parts.join}</g>"
      end

      def summary(request)
        "request #{request.number}, #{request.name}: #{size(request.pages)}, #{request.faults} page faults"
      end

      def scale
        last = @figures.requests.size
        ["<path class=\"edge\" d=\"M#{LEFT} 10V#{HEIGHT}H#{WIDTH}\"/>", text(0, 16, size(@most)),
         text(LEFT, HEIGHT + 18, "1"), text(LEFT + (last * @step), HEIGHT + 18, last, anchor: "end")]
      end

      def size(pages) = format("%.2f MiB", @figures.mebibytes(pages))
    end

    # A map of the memory: a line for each 2 MiB in which the worker has private pages, by use and in the order of
    # addresses, with a mark for each private page in the colour of its cause. Between the marks is shared memory, or
    # nothing.
    class Map < HtmlPage::Picture
      PAGES = 512 # a line
      WIDTH = 2 # of a page
      HEIGHT = 5 # of a line
      LABEL = 24
      LINES = 1000 # at most of one kind

      # @param pages [PrivatePages]
      def initialize(pages)
        super()
        @pages = pages
      end

      # @return [String]
      def svg
        top = 0
        shapes = AddressSpace::KINDS.flat_map do |kind, name|
          lines = lines(kind)
          next [] if lines.empty?

          label = text(0, top + 16, label(name, lines.size))
          top += LABEL
          [label, *lines.first(LINES).flat_map { |_, runs| line(runs, (top += HEIGHT) - HEIGHT) }]
        end
        draw(PAGES * WIDTH, top + 4, "private pages by address", shapes)
      end

      private

      # @return [Array<Array(Integer, Array)>] a line's number and its runs: first page in the line, pages, cause
      def lines(kind)
        found = Hash.new { |lines, number| lines[number] = [] }
        @pages.runs.each do |first, count, of, cause,|
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

      def label(name, lines)
        more = ", #{lines - LINES} more lines are not drawn" if lines > LINES
        "#{name}, a line for 2 MiB#{more}"
      end
    end
  end
end
