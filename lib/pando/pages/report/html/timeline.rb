# frozen_string_literal: true

module Pando
  module Pages
    module Report
      class Html
        # A bar for each request, stacked by cause: what it made private and is so still.
        #
        # @api private
        class Timeline
          WIDTH = 1000
          HEIGHT = 240
          LEFT = 70
          WIDEST = 40

          # @param figures [Figures]
          def initialize(figures)
            @figures = figures
          end

          # @return [String]
          def svg
            requests = @figures.requests
            @most = [requests.map { |request| request.causes.values.sum }.max.to_i, 1].max
            @step = [(WIDTH - LEFT).to_f / requests.size, WIDEST].min
            "<svg viewBox=\"0 0 #{WIDTH} #{HEIGHT + 24}\" width=\"#{WIDTH}\" role=\"img\" " \
              "aria-label=\"memory that requests made private\">#{scale}#{requests.map { |one| bar(one) }.join}</svg>"
          end

          private

          def bar(request)
            left = LEFT + ((request.number - 1) * @step)
            bottom = HEIGHT
            parts = Census::CAUSES.keys.filter_map do |cause|
              height = request.causes[cause] * (HEIGHT - 10) / @most.to_f
              next if height.zero?

              bottom -= height
              "<rect class=\"#{cause}\" x=\"#{left.round(2)}\" y=\"#{bottom.round(2)}\" " \
                "width=\"#{[@step - 1, @step * 0.8].max.round(2)}\" height=\"#{height.round(2)}\"/>"
            end
            "<g><title>#{HtmlPage.escape(title(request))}</title>#{parts.join}</g>"
          end

          def title(request)
            size = format("%.2f MiB", @figures.mebibytes(request.causes.values.sum))
            "request #{request.number}, #{request.name}: #{size}, #{request.faults} page faults"
          end

          def scale
            size = format("%.2f MiB", @figures.mebibytes(@most))
            last = @figures.requests.size
            "<path class=\"edge\" d=\"M#{LEFT} 10V#{HEIGHT}H#{WIDTH}\"/><text x=\"0\" y=\"16\">#{size}</text>" \
              "<text x=\"#{LEFT}\" y=\"#{HEIGHT + 18}\">1</text>" \
              "<text x=\"#{(LEFT + (last * @step)).round}\" y=\"#{HEIGHT + 18}\" text-anchor=\"end\">#{last}</text>"
          end
        end
      end
    end
  end
end
