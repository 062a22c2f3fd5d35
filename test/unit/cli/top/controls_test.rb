# frozen_string_literal: true

require "test_helper"
require "support/top_snapshot"
require "pando/cli/top/controls"

# What the keys of `pando top` do.
class TopControlsTest < Minitest::Test
  include Support::TopSnapshot

  Controls = Pando::CLI::Top::Controls

  # Records the commands.
  class Feed
    attr_reader :sent

    def initialize = @sent = []

    def command(word, pairs = {})
      return if sent.size == 9

      sent << [word, pairs.compact]
      sent.size
    end
  end

  def setup
    @feed = Feed.new
    @controls = Controls.new(@feed)
    show
  end

  def test_a_kill_must_be_confirmed_and_names_the_pid
    select_worker
    press("K")

    assert_match(%r{\AKill worker 0 \(pid 13\), which is at GET /reports\? \(y/n\)}, note)
    press("n")

    assert_equal(["kill: not done", []], [note, @feed.sent])
    press("K", "y")

    assert_equal([["kill", { "slot" => 0, "pid" => 13 }]], @feed.sent)
  end

  def test_the_stack_of_a_worker
    press("t")
    assert_match(/only a worker/, note)
    select_worker
    press("t")
    assert_equal([["stack", { "slot" => 0, "pid" => 13 }]], @feed.sent)
    @controls.receive([[:line, 1, "main thread:"], [:line, 7, "of another command"], [:line, 1, "    app.rb:3"],
                       [:outcome, 1, "", true]])

    assert_equal(["main thread:", "    app.rb:3"], @controls.lines(80, 24).first(2).map(&:text))
    assert_equal("stack", note)
    press("q")
    assert_includes(@controls.lines(80, 24).map(&:text).join, "worker 0")
  end

  def test_a_long_stack_scrolls_and_keeps_the_ends_of_its_lines
    select_worker
    press("t")
    @controls.receive([[:line, 1, "main thread:"], *frames(60)])

    assert_equal(["main thread:", "    ..#{"x" * 55}/app.rb:1:in 'call'", "(40 more lines: scroll)"],
                 text.lines(chomp: true).values_at(0, 1, 21))
    press("j", :page_down)
    assert_includes(lines.first.text, "app.rb:11:in")
    press(*[:page_down] * 9)
    assert_includes(lines[21].text, "app.rb:60:in")
    press("k")
    assert_includes(lines.first.text, "app.rb:38:in")
    press("t")
    assert_empty(lines.first.text)
  end

  def frames(count) = (1..count).map { |line| [:line, 1, "    /#{"x" * 100}/app.rb:#{line}:in 'call'"] }

  def test_only_workers_are_killed
    press("K", "y")

    assert_empty(@feed.sent)
    assert_match(/only a worker/, note)
  end

  def test_commands
    press("r", "R", "y", "d", "y", "R", "x")

    assert_equal([["refork", {}], ["reload", {}], ["drain", {}]], @feed.sent)
    show("state" => "draining")
    press("d", "y")

    assert_equal(["drain", { undo: true }], @feed.sent.last)
  end

  def test_each_press_scales_by_one
    press("+", "+", "-")

    assert_equal([4, 5, 4], @feed.sent.map { |_, pairs| pairs[:workers] })
    @controls.receive([[:outcome, 3, "done", true]])
    press("-", "-", "-", "-")

    assert_equal([2, 1, 1, 1], @feed.sent.last(4).map { |_, pairs| pairs[:workers] })
  end

  def test_a_paused_screen_scales_from_the_size_of_now
    press("p")
    show("workers" => 6)
    press("+")

    assert_equal([["scale", { workers: 7 }]], @feed.sent)
  end

  def test_progress_and_outcome_of_the_last_command
    press("r", "+")
    @controls.receive([[:outcome, 1, "every worker runs generation 3", true], [:progress, 2, "worker.ready"]])

    assert_equal("scale: worker.ready", note)
    @controls.receive([[:outcome, 2, "a cluster has 1 to 9 workers", false]])

    assert_equal("scale failed: a cluster has 1 to 9 workers", note)
  end

  def test_the_number_of_commands_is_bounded
    10.times { press("r") }

    assert_equal("too many commands are running", note)
  end

  def test_selecting_sorting_looking_pausing
    press("j", :down, "j", "s")

    assert_includes(selected, "worker 0")
    assert_includes(text, "DOING*")
    press(:enter)

    assert_includes(text, "GET /reports")
    refute_includes(text, "PROCESS")
    press(:escape, "p")
    show("version" => "9.9")

    refute_includes(text, "9.9")
    press("p")

    assert_includes(text, "9.9")
  end

  def test_a_process_that_has_ended_hands_on_its_place
    select_worker
    records = RECORDS.reject { |_, pairs| pairs["pid"] == 13 }
    @controls.receive([[:status, records, RESULTS]])

    assert_includes(selected, "worker 1")
  end

  def test_a_process_without_a_pid_is_not_the_first_one_selected
    show_ordered_mold

    assert_includes(selected, "monitor")
  end

  def test_a_process_without_a_pid_has_no_events_of_others
    show_ordered_mold
    @controls.receive([[:event, "12:00:00 reload.started", {}], [:event, "12:00:00 mold.ready", { "pid" => 12 }]])
    press(*["j"] * RECORDS.size, :enter)

    assert_match(/^state +ordered$/, text)
    assert_includes(text, "its events")
    refute_match(/reload.started|mold.ready/, text)
  end

  def test_a_server_that_is_gone_is_told_until_it_is_back
    @controls.receive([[:gone, "the server is gone"]])

    assert_match(/\Ano server since \d\d:\d\d:\d\d, trying again each second: the server is gone/, note)
    assert_includes(text, "worker 0")
    show

    assert_equal("", note)
  end

  def test_help_and_quit
    press("?")

    assert_includes(text, "SIGKILL")
    press("q")

    refute_predicate(@controls, :over?)
    press("q")

    assert_predicate(@controls, :over?)
  end

  private

  def show(server = {})
    records = RECORDS.map { |word, pairs| [word, { **pairs, **(word == "server" ? server : {}) }] }
    @controls.receive([[:status, records, RESULTS]])
  end

  def show_ordered_mold
    @controls = Controls.new(@feed)
    @controls.receive([[:status, [*RECORDS, ["mold", { "generation" => 3, "state" => "ordered" }]], RESULTS]])
  end

  def select_worker = press("j", "j", "j")
  def press(*keys) = keys.each { |key| @controls.press(key) }
  def lines = @controls.lines(80, 24)
  def text = lines.map(&:text).join("\n")
  def note = lines[-2].text
  def selected = lines.find { |line| line.style == :selected }.text
end
