# frozen_string_literal: true

require "test_helper"
require "json"
require "pando/fork_safety/libraries"

# What is run around a fork, and what becomes of errors in it.
class PreparationTest < Minitest::Test
  Libraries = Pando::ForkSafety::Libraries

  def setup
    @story = []
    @told = []
  end

  def test_the_last_to_be_made_ready_is_the_first_to_go_on
    assert_equal :pid, around([library("one"), library("two")]) { note("fork", :pid) }
    assert_equal %w[one:before two:before fork two:parent one:parent], @story
  end

  def test_a_fork_that_fails_is_followed_by_the_parents_part
    assert_raises(Errno::EAGAIN) { around([library("one")]) { raise Errno::EAGAIN } }
    assert_equal %w[one:before one:parent], @story
  end

  def test_the_child_does_its_part_when_it_is_told_to
    assert_equal %w[one:before two:before fork later two:child one:child], in_child
  end

  def test_a_library_that_fails_is_left_out
    around([library("one"), library("bad", before: -> { raise "no\nway" }), library("two")]) { note("fork") }

    assert_equal %w[one:before two:before fork two:parent one:parent], @story
    assert_equal [%W[bad no\nway]], @told
  end

  def test_or_prevents_the_fork_where_that_is_wanted
    reason = forked do
      error = assert_raises(Libraries::Unsafe) do
        around([library("one"), library("bad", before: -> { raise "no\nway" }), library("two")], strict: true) { flunk }
      end
      [error.message, Pando::ForkSafety.reason, *@story]
    end

    assert_equal ["bad: no", "bad: no", "one:before", "one:parent"], reason
  end

  def test_what_fails_after_the_fork_is_told_and_stops_nobody
    around([library("one"), library("bad", parent: -> { raise "late" })]) { note("fork") }

    assert_equal %w[one:before bad:before fork one:parent], @story
    assert_equal [%w[bad late]], @told
  end

  def test_native_threads_that_no_child_would_have_prevent_it
    threads = Libraries::Library.new("threads", "Object") { threads(/./, unsafe: true) }
    reason = forked do
      [assert_raises(Libraries::Unsafe) { around([threads], strict: true) { flunk } }.message]
    end

    assert_match(/\Athreads: \d+ of its native threads are alive, and a child has none of them\z/, reason.first)
  end

  def test_one_that_came_too_late_to_be_watched_prevents_it
    late = Libraries::Library.new("late", "Object") { unsafe_after("PreparationTest", :setup, because: "it is a test") }
    reason = forked { [assert_raises(Libraries::Unsafe) { around([late], strict: true) { flunk } }.message] }
    watched = forked do
      Libraries::FirstUse.watch(late.marks.first, "late")
      [around([late], strict: true) { "forked" }]
    end

    assert_equal ["late: it was loaded late and may have been used"], reason
    assert_equal %w[forked], watched
  end

  private

  def note(text, result = nil)
    @story << text
    result
  end

  def library(name, before: -> {}, parent: -> {}, child: -> {})
    story = @story
    Libraries::Library.new(name, "Object") do
      handled note: "It is made up.", source: "https://example.test"
      before_fork { before.call.then { story << "#{name}:before" } }
      in_parent { parent.call.then { story << "#{name}:parent" } }
      in_child { child.call.then { story << "#{name}:child" } }
    end
  end

  def around(libraries, strict: false, &fork) = preparation(libraries).around(strict, &fork)

  def preparation(libraries)
    Libraries::Preparation.new(libraries, ->(name, error) { @told << [name, error.message] })
  end

  # @return what the block returned, in a child of this process
  def forked
    reader, writer = IO.pipe
    pid = fork do
      writer.write(JSON.generate(yield))
    ensure
      exit!(0)
    end
    writer.close
    JSON.parse(reader.read)
  ensure
    Process.wait(pid)
  end

  def in_child
    reader, writer = IO.pipe
    preparation = preparation([library("one"), library("two")])
    pid = preparation.around(false) { note("fork").then { fork } }
    unless pid
      @story << "later"
      preparation.settle
      writer.write(@story.join(" "))
      exit!(0)
    end
    writer.close
    reader.read.split
  ensure
    Process.wait(pid) if pid
  end
end
