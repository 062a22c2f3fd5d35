# frozen_string_literal: true

require_relative "../bench_helper"
require "support/lab/readme_chart"

# The picture for a README: whole, readable on any background, no name over another.
class LabReadmeChartTest < Minitest::Test
  Line = Bench::Lab::ReadmeChart::Line

  def setup
    lines = [line("Puma & co", "puma", 1800), line("Pando", "pando", 610), line("Pitchfork", "pitchfork", 620)]
    @svg = Bench::Lab::ReadmeChart.new(lines, title: "Memory").to_s
  end

  def test_each_line_has_its_name_and_its_mean_and_the_largest_comes_first
    assert_equal ["Puma &amp; co: 900", "Pitchfork: 310", "Pando: 305"], names.map(&:last)
    assert_equal 3, lines.size
  end

  def test_names_keep_their_distance
    places = names.map { |y, _words| y.to_f }

    assert(places.each_cons(2).all? { |one, next_one| next_one - one >= Bench::Lab::ReadmeChart::ROW })
  end

  def test_nothing_comes_from_elsewhere_and_the_background_is_the_pages
    refute_match(/href|url\(|@import|<image|<rect/, @svg)
  end

  def test_the_scale_ends_above_the_highest_point
    assert_includes @svg, ">2,000</text>"
    heights = lines.flat_map { |points| points.split.map { |point| point.split(",").last.to_f } }
    assert_operator heights.min, :>=, Bench::Lab::ReadmeChart::TOP
  end

  private

  def names = @svg.scan(%r{<text [^>]*y="([\d.]+)"[^>]*>([^<]*: [\d,]+)</text>})
  def lines = @svg.scan(/<polyline points="([^"]+)"/).flatten
  def line(label, family, last) = Line.new(label, family, false, [[0, 0], [600, last]])
end
