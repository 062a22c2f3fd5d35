# frozen_string_literal: true

require_relative "../bench_helper"
require "support/lab/comparison"
require "support/lab/outcomes"

# The table that a README shows.
class LabComparisonTest < Minitest::Test
  MIB = 1024 * 1024

  def test_each_server_is_a_multiple_of_puma_with_and_without_jemalloc_and_of_the_best_list
    table = table(measured("puma", 1000, 80), measured("puma", 800, 72, "jemalloc"),
                  measured("pitchfork-list", 640, 76, "jemalloc"), measured("pitchfork-long", 500, 76, "jemalloc"),
                  measured("pando-auto", 400, 60))

    assert_equal ["pando-auto", "400", "440", "0.40", "0.50", "0.80", "0.75"], row(table, "pando-auto")
    assert_equal ["puma", "1000", "1100", "1.00", "1.25", "2.00", "1.00"], row(table, "puma")
  end

  def test_what_was_not_measured_is_left_open
    table = table(measured("puma", 1000, 80), measured("pitchfork-list", 300, 80), measured("pando-auto", 400, 60))

    assert_equal %w[0.40 - -], row(table, "pando-auto")[3..5]
  end

  def test_failed_requests_are_named_beside_the_table
    sound = table(measured("puma", 1000, 80), measured("pando-auto", 400, 60))
    spoilt = table(measured("puma", 1000, 80), measured("pando-auto", 400, 60, failures: 2),
                   measured("pando-auto", 400, 60, failures: 0), measured("pando-auto", 400, 60, failures: 3))

    refute_includes sound.note, "FAILED"
    assert_includes spoilt.note, "REQUESTS FAILED"
    assert_includes spoilt.note, "pando-auto: 5"
    assert_includes spoilt.markdown, "REQUESTS FAILED"
  end

  def test_without_puma_there_is_no_table
    assert_nil table(measured("pando-auto", 400, 60))
  end

  def test_as_markdown_each_row_has_a_cell_for_each_column
    table = table(measured("puma", 1000, 80))
    lines = table.markdown.lines.grep(/\A\|/)

    cells = lines.map { |line| line.count("|") - 1 }
    assert_equal [table.head.size] * 3, cells
    assert_equal "| puma | 1000 | 1100 | 1.00 | - | - | 1.00 |", lines.last.chomp
  end

  private

  def table(*runs) = Bench::Lab::Comparison.new(Bench::Lab::Outcomes.new(runs).to_a).table("here")
  def row(table, name) = table.rows.find { |row| row.first == name }

  def measured(server, pss, cpu, allocator = "default", **more)
    { app: "redmine", server: server, label: server, allocator: allocator, ruby: "3.3.8", yjit: true, workers: 4,
      requests: 4000, memory: { pss: { average: pss * MIB, final: pss * 1.1 * MIB } }, cpu: { overall: cpu / 1000.0 },
      **more }
  end
end
