# frozen_string_literal: true

require "pando/pages/report/figures"

module Pando
  module Pages
    module Report
      # Tables for a terminal, in MiB.
      #
      # @api private
      class Text
        # Requests that are shown by name.
        MOST = 10
        NONE = "."

        def initialize(census)
          @census = census
          @figures = Figures.new(census)
        end

        # @return [String]
        def to_s
          [*head, "", *kinds, *(["", *ages, "", *requests] if @census.recorded?), "", *notes].join("\n") << "\n"
        end

        private

        def head
          [@figures.title, @figures.facts["ruby"], @figures.compiler,
           ("Watched: #{@figures.watched}." if @census.recorded?)].compact
        end

        def kinds
          rows = @figures.kinds.map { |kind| kind_row(AddressSpace::KINDS[kind], kind) }
          table(["MiB", "private", *extra_titles, *causes.map { |cause| Census::CAUSES[cause] }],
                [*rows, kind_row("all", *@figures.kinds)])
        end

        def extra_titles = [*(%w[copied new] if @census.copied), *("shared" if @census.shared)]

        def kind_row(name, *kinds)
          own, copied, shared = [@census.private, @census.copied, @census.shared].map do |pages|
            kinds.sum { |kind| pages.fetch(kind, 0) } if pages
          end
          [name, own, *([copied, own - copied] if copied), *shared,
           *causes.map { |cause| kinds.sum { |kind| @census.by_kind_and_cause[[kind, cause]] } }]
        end

        # Without a recording there is but one.
        def causes = @census.recorded? ? @figures.causes : []

        def ages
          rows = @figures.ages.map { |age| [age_name(age), age.causes.values.sum, *age.causes.values_at(*causes)] }
          table(["request", "private", *causes.map { |cause| Census::CAUSES[cause] }], rows)
        end

        def age_name(age)
          return "before" if age.to.zero?

          age.from == age.to ? age.from.to_s : "#{age.from} to #{age.to}"
        end

        def requests
          kinds = @figures.kinds.select { |kind| most.any? { |request| request.kinds[kind].positive? } }
          rows = most.map do |request|
            [request.number.to_s, request.causes.values.sum, *request.kinds.values_at(*kinds), "  #{request.name}"]
          end
          table(["most by", "private", *AddressSpace::KINDS.values_at(*kinds), ""], rows)
        end

        def most
          @most ||= @figures.requests.select { |request| request.causes.any? }
                            .max_by(MOST) { |request| request.causes.values.sum }
        end

        def notes
          smaps = @figures.of_bytes(@figures.facts["private"])
          [("The kernel's sum for this process (smaps_rollup): #{smaps} private." if smaps),
           ("copied: the mold has a page there too, so it was shared until this worker wrote to it." if @census.copied)]
            .compact
        end

        # Numbers are pages, shown in MiB.
        def table(titles, rows)
          lines = [titles, *rows.map { |row| row.map { |cell| cell.is_a?(String) ? cell : size(cell.to_i) } }]
          widths = lines.transpose.map { |column| column.map(&:size).max }
          lines.map do |line|
            line.zip(widths).each_with_index.map { |cell, column| pad(*cell, column) }.join("  ").rstrip
          end
        end

        # Numbers to the right.
        def pad(cell, width, column)
          column.zero? || cell.start_with?("  ") ? cell.ljust(width) : cell.rjust(width)
        end

        def size(pages) = pages.zero? ? NONE : format("%.2f", @figures.mebibytes(pages))
      end
    end
  end
end
