# frozen_string_literal: true

require "test_helper"
require "tmpdir"
require "pando/slow_entry"

class SlowEntryTest < Minitest::Test
  def in_file
    Dir.mktmpdir { |folder| yield File.join(folder, "slow.log") }
  end

  def entry(path) = Pando::SlowEntry.new(Pando::SlowEntry::Terms.new(1.0, path, :text))

  def test_a_long_stack_loses_its_middle
    in_file do |path|
      assert(entry(path).write({ path: "/a" }, Array.new(5000) { |number| "file.rb:#{number}:in 'deep'" }))
      text = File.read(path)

      assert_operator(text.bytesize, :<=, Pando::SlowEntry::LIMIT)
      assert_match(/file\.rb:0:.*\d+ frames left out.*file\.rb:4999:/m, text)
    end
  end

  def test_a_path_of_a_client_makes_no_second_line
    in_file do |path|
      entry(path).write({ path: "/a\nseconds=1" })

      assert_equal(1, File.readlines(path).size)
    end
  end

  def test_what_a_client_has_written_cannot_steer_a_terminal
    facts = { path: "/\e[2J", request_id: "a\u009b2J \u202eb\"" }
    in_file do |path|
      assert(entry(path).write(facts, ["a.rb:1:in '\u009b2J'"]))

      assert_equal(["path=/\\e[2J request_id=\"a\\x9B2J \\u{202E}b\\\"\"", "    a.rb:1:in '\\x9B2J'"],
                   File.readlines(path, chomp: true).map { |line| line.sub(/\Atime=\S+ /, "") })
    end
    in_file do |path|
      assert(Pando::SlowEntry.new(Pando::SlowEntry::Terms.new(1.0, path, :json)).write(facts))
      text = File.read(path)

      assert_match(/\A[\x20-\x7e]+\n\z/, text)
      assert_equal(facts[:request_id], JSON.parse(text)["request_id"])
    end
  end

  def test_a_file_that_has_been_moved_is_not_taken_for_another_kind
    error = assert_raises(Pando::SlowEntry::Unreadable) { Pando::SlowEntry.newest("/nowhere/slow.log") }

    assert_equal("there is no file /nowhere/slow.log. The next slow request creates it", error.message)
  end

  def test_what_is_lost_is_counted
    log = entry("/dev/full")
    before = Pando::LineWriter.lost

    refute(log.write({ path: "/a" }))
    assert_equal([1, 1], [log.lost, Pando::LineWriter.lost - before])
  end

  def test_of_many_in_a_second_some_are_left_out
    in_file do |path|
      log = entry(path)
      20.times { |number| log.write({ path: "/#{number}" }) }
      before = Pando::LineWriter.lost

      assert_operator(File.readlines(path).size, :<, 20)
      assert_operator(log.lost, :>, 0)
      assert_equal(before, Pando::LineWriter.lost)
    end
  end
end
