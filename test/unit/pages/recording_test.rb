# frozen_string_literal: true

require "test_helper"
require "stringio"
require "pando/pages/report"

# A recording on its way from the worker, which may be anybody by now.
class PagesRecordingTest < Minitest::Test
  Recording = Pando::Pages::Recording
  Census = Pando::Pages::Census

  MAPS = <<~MAPS
    1000-9000 rw-p 00000000 00:00 0  [heap]
    10000-20000 rw-p 00000000 00:00 0
    30000-31000 r-xp 00000000 00:00 0
  MAPS

  def test_it_comes_as_it_was_sent
    read = Recording.read(StringIO.new(written))

    assert_equal recording.parts, read.parts
    assert_equal %i[before job major_gc], read.steps.map(&:cause)
    assert_equal 2, read.number("slot")
  end

  def test_whatever_is_cut_off_is_broken
    whole = written
    whole.bytesize.times do |size|
      assert_raises(Recording::Broken) { Recording.read(StringIO.new(whole.byteslice(0, size))) }
    end
  end

  def test_a_part_that_says_it_is_huge_is_not_read
    assert_raises(Recording::Broken) { Recording.read(StringIO.new("#{Recording::MAGIC}#{[1 << 62].pack("Q<")}x")) }
  end

  def test_pages_and_steps_that_cannot_be_are_broken
    [{ "pages" => [page(1, 7)].pack("Q*") }, { "steps" => [0, 99, 0, 0, 0, 0].pack("L*") }, { "facts" => "\xFF" },
     { "steps" => [0, 0].pack("L*") }, { "jobs" => "?\n" }].each do |wrong|
      broken = Recording.new(recording.parts.merge(wrong))

      assert_raises(Recording::Broken, wrong.inspect) { Pando::Pages::Report.write(Census.new(broken), "text") }
    end
  end

  def test_pages_are_counted_by_kind_and_cause
    census = Census.new(recording)

    assert_equal({ malloc: 2, ruby_heap: 1, code: 1, file: 1 }, census.private)
    assert_equal({ before: 2, compiling: 1, major_gc: 1, compile: 1 }, census.causes)
    assert_equal 1, census.by_kind_and_cause[%i[ruby_heap major_gc]]
  end

  def test_the_pages_that_the_mold_has_were_shared
    mold = Struct.new(:pages) { def page?(number) = pages.include?(number) }.new([1])

    assert_equal({ malloc: 1 }, Census.new(recording, mold: mold).copied)
  end

  def test_reports_escape_what_a_worker_says
    %w[text json html].each do |format|
      report = Pando::Pages::Report.write(Census.new(recording), format)

      refute_includes report, "<script>" if format == "html"
      refute_includes report, "\e"
      assert_includes report, "evil"
    end
  end

  private

  def written = StringIO.new.tap { |io| recording.write(io) }.string

  # [before, of a file] [a job that compiles: malloc and code] [a collection: Ruby's heap]
  def recording
    Recording.new(
      "facts" => "facts pid=1 slot=2 generation=0 served=4 ruby=x private=20480\n",
      "jobs" => Pando::Cluster::Control::Line.encode("job", request: "GET /<script>\e[31mevil", compiled: 3),
      "maps" => MAPS, "heap" => [0x10000].pack("Q*"),
      "steps" => [[0, 0, 0, 2, 0, 9], [1, 1, 2, 2, 0, 9], [1, 3, 1, 1, 0, 9]].flatten.pack("L*"),
      "pages" => [page(1, 0), page(2, 1), page(16, 2), page(48, 1), page(99, 0) | (1 << 18)].pack("Q*")
    )
  end

  def page(number, step) = (number << 19) | step
end
