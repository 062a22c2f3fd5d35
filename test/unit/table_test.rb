# frozen_string_literal: true

require "test_helper"
require "pando/table"
require "pando/html_page"

# The tables and charts of the commands' reports.
class TableTest < Minitest::Test
  Table = Pando::Table
  ROWS = [["Ruby heap", 1.5, 12_345, "a"], ["\e<b>", 0.0, nil, %w[c d]]].freeze

  def test_text_has_aligned_columns
    assert_equal(["use         MiB   count  by", "Ruby heap  1.50  12,345  a", "\\e<b>         .          c, d"],
                 Table.new(%w[use MiB count by], ROWS).lines)
  end

  def test_html_is_escaped_except_for_markup
    html = Table.new(%w[use MiB count by], [*ROWS, [Pando::HtmlPage.code("<x>"), 1.0, 2, nil]]).html(["note"])

    assert_equal(<<~HTML.delete("\n"), html)
      <table><tr><th>use</th><th class="number">MiB</th><th class="number">count</th><th>by</th></tr>
      <tr class="note"><td>Ruby heap</td><td class="number">1.50</td><td class="number">12,345</td><td>a</td></tr>
      <tr><td>\e&lt;b&gt;</td><td class="number">.</td><td class="number"></td><td>c, d</td></tr>
      <tr><td><code>&lt;x&gt;</code></td><td class="number">1.00</td><td class="number">2</td><td></td></tr></table>
    HTML
  end

  def test_without_rows_there_is_no_table
    assert_nil(Table.new(%w[use], []).html)
    assert_equal(["use"], Table.new(%w[use], []).lines)
  end

  def test_bars_are_as_long_as_their_parts
    bars = [["<a>", [[:own, 3, "x"], [:part, 1]], "4"], ["b", [[:own, 2]], "2"]]
    svg = Pando::HtmlPage::Bars.new("memory", bars.map { |bar| Pando::HtmlPage::Bars::Bar.new(*bar) }, left: 100).svg

    assert_equal([%w[own 100.0 315.0], %w[part 415.0 105.0], %w[own 100.0 210.0]],
                 svg.scan(/<rect class="(\w+)" x="([\d.]+)" .*?width="([\d.]+)"/))
    assert_equal(["&lt;a&gt;", "4", "b", "2"], svg.scan(%r{<text[^>]*>([^<]*)</text>}).flatten)
    assert_nil(Pando::HtmlPage::Bars.new("memory", [], left: 100).svg)
  end
end
