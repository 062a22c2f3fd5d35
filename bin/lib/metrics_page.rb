# frozen_string_literal: true

require "pando/admin/metrics"

# Writes the table of docs/metrics.md from the table of metrics. After a change to that table:
#
#   ruby -Ilib bin/lib/metrics_page.rb
class MetricsPage
  PATH = File.expand_path("../../docs/metrics.md", __dir__)
  # The table stands between these lines.
  MARKS = ["<!-- Generated from lib/pando/admin/metrics.rb: edit the table there. -->\n",
           "<!-- End of the table. -->\n"].freeze

  # @param text [String] of the page
  # @return [String] with the table of today
  def markdown(text = File.read(PATH, encoding: "UTF-8"))
    before, rest = text.split(MARKS.first, 2)
    [before, MARKS.first, "\n", table, "\n", MARKS.last, rest.split(MARKS.last, 2).last].join
  end

  private

  def table
    rows = Pando::Admin::Metrics.known.map do |one|
      "| `#{one.name}` | #{one.type} | #{one.labels.map { |label| "`#{label}`" }.join(", ")} | #{one.help} |"
    end
    ["| name | type | labels | meaning |", "|---|---|---|---|", *rows].join("\n") << "\n"
  end
end

File.write(MetricsPage::PATH, MetricsPage.new.markdown) if $PROGRAM_NAME == __FILE__
