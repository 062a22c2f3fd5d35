# frozen_string_literal: true

require "test_helper"
require "open3"
require "pando/fork_safety"
require_relative "../sys/support/in_child"

# Each test forks in a child of its own: what it registers goes with it.
class ForkCallbacksTest < Minitest::Test
  include SysSupport::InChild

  Callbacks = Pando::ForkSafety::Callbacks
  SIDES = %i[before parent child].freeze

  # Callbacks that note their caller, in all processes: "child b 4711".
  class Notes
    def initialize
      @reader, @writer = IO.pipe
    end

    def write(text) = @writer.syswrite("#{text} #{Process.pid}\n")

    def register(key, **others)
      noting = SIDES.to_h { |side| [side, -> { write("#{side} #{key}") }] }
      Pando::ForkSafety.register(key, **noting, **others)
    end

    # @return [Array<String>] since the last call; the processes that wrote must have ended
    def take
      @writer.close
      all = @reader.read.lines(chomp: true)
      @reader, @writer = IO.pipe
      all
    end

    # @return [Array<String>] of this process, without its pid
    def ours(all = take) = all.filter_map { |line| line[/\A(.*) #{Process.pid}\z/, 1] }
  end

  def with_notes(*keys)
    in_child do
      notes = Notes.new
      keys.each { |key| notes.register(key) }
      yield notes
    end
  end

  def fork_and_wait = Process.wait(fork { leave })

  # The block runs in a child of a subreaper.
  # @yieldparam tell [#call] takes what this method returns, from any process @return [Array] sorted
  def forker_tells
    in_child do
      Pando::Sys.subreaper!
      reader, writer = IO.pipe
      fork { yield(->(*words) { writer.syswrite(words.map { |word| "#{word.to_json}\n" }.join) }) && leave }
      writer.close
      [Process.wait, Process.wait]
      reader.each_line.map { |line| JSON.parse(line) }.sort_by(&:to_s)
    end
  end

  # Which callbacks ran here, and in the one child.
  def sides(notes)
    all = notes.take
    ours = notes.ours(all)
    [ours, all.reject { |line| line.end_with?(" #{Process.pid}") }.map { |line| line.sub(/ \d+\z/, "") }]
  end

  WAYS = {
    "Kernel#fork" => -> { Process.wait(Kernel.fork { exit!(0) }) },
    "Process.fork" => -> { Process.wait(Process.fork { exit!(0) }) },
    "fork without a block" => -> { (pid = fork) ? Process.wait(pid) : exit!(0) },
    "IO.popen" => -> { IO.popen("-") { |io| io ? io.read : exit!(0) } },
    "a thread" => -> { Thread.new { Process.wait(fork { exit!(0) }) }.join },
    "a fiber" => -> { Fiber.new { Process.wait(fork { exit!(0) }) }.resume }
  }.freeze

  def test_every_way_to_fork_runs_each_side_once_and_in_order
    WAYS.each do |name, way|
      result = with_notes(:a, :b) do |notes|
        way.call
        sides(notes)
      end

      assert_equal [["before b", "before a", "parent a", "parent b"], ["child a", "child b"]], result, name
    end
  end

  def test_commands_are_no_forks
    noted = with_notes(:a) do |notes|
      Process.wait(spawn("true"))
      [system("true"), `true`, IO.popen("true", &:read), Open3.capture2e("true")]
      notes.take
    end

    assert_empty noted
  end

  def test_the_child_of_a_daemon_is_a_child_whose_parent_ends
    noted = with_notes(:a) do |notes|
      reader, writer = IO.pipe
      forker = fork do
        Process.daemon(true, true)
        writer.syswrite("#{Process.pid}\n")
        leave
      end
      Process.wait(forker)
      daemon = reader.gets.chomp
      notes.take.filter_map { |line| line.sub(forker.to_s, "forker").sub(daemon, "daemon")[/.*(?:forker|daemon)\z/] }
    end

    assert_equal ["child a forker", "before a forker", "child a daemon"], noted
  end

  def test_a_sibling_runs_them_once_and_never_in_the_middle
    result = in_child do
      Pando::Sys.subreaper!
      notes = Notes.new
      notes.register(:a)
      Pando::Sys.fork_sibling ? Process.wait : leave
      sides(notes)
    end

    assert_equal [["before a", "parent a"], ["child a"]], result
  end

  # Ruby runs a command with vfork(2), but with fork(2) in a process of root's.
  def test_around_the_fork_of_a_sibling_they_fork_ordinary_children_and_run_commands
    told = forker_tells do |tell|
      command = -> { system("exit 7") || Process.last_status.exitstatus }
      work = -> { tell.call(Process.wait2(fork { leave(7) }).last.exitstatus, command.call) }
      Pando::ForkSafety.register(:a, before: work, parent: work, child: work)
      Pando::Sys.fork_sibling || leave
      tell.call(error_of { Process.wait })
    end

    assert_equal [*[7] * 6, "Errno::ECHILD"], told
  end

  # A hook of another library, which runs around Pando's.
  def test_around_the_fork_of_a_sibling_another_hook_runs_commands
    told = forker_tells do |tell|
      work = -> { tell.call(system("exit 7") || Process.last_status.exitstatus) }
      Process.singleton_class.prepend(Module.new { define_method(:_fork) { work.call && super().tap { work.call } } })
      Pando::Sys.fork_sibling || leave
      tell.call(error_of { Process.wait })
    end

    assert_equal [*[7] * 3, "Errno::ECHILD"], told
  end

  def test_a_child_that_is_held_runs_them_when_it_is_told
    result = in_child do
      Pando::Sys.subreaper!
      notes = Notes.new
      notes.register(:a)
      unless Callbacks.hold_child { Pando::Sys.fork_sibling }
        notes.write("held")
        2.times { Pando::ForkSafety.after_fork }
        Process.wait(fork { notes.write("grandchild") || leave })
        leave
      end
      Process.wait
      sides(notes)
    end

    assert_equal [["before a", "parent a"],
                  ["held", "child a", "before a", "child a", "grandchild", "parent a"].sort],
                 [result.first, result.last.sort]
  end

  def test_a_held_child_learns_of_a_failure_after_all_have_run
    message = in_child do
      Pando::Sys.subreaper!
      reader, writer = IO.pipe
      notes = Notes.new
      notes.register(:a, child: -> { raise "no network" })
      notes.register(:b)
      unless Callbacks.hold_child { Pando::Sys.fork_sibling }
        begin
          Pando::ForkSafety.after_fork
        rescue Pando::ForkSafety::CallbackFailed => e
          writer.syswrite("#{e.message}; #{e.cause.class}\n")
        end
        leave
      end
      Process.wait
      [reader.gets, sides(notes).last]
    end

    assert_match(/\Acallback a in the child after a fork at .*_test.rb:\d+ raised RuntimeError: no network; RuntimeE/,
                 message.first)
    assert_equal ["child b"], message.last
  end

  def test_the_same_key_again_takes_the_place_of_the_former
    result = with_notes(:a, :b) do |notes|
      notes.register(:a, child: -> { notes.write("child again") })
      fork_and_wait
      sides(notes)
    end

    assert_equal [["before b", "before a", "parent a", "parent b"], ["child again", "child b"]], result
  end

  def test_what_is_removed_runs_no_more
    result = with_notes(:a, :b) do |notes|
      removed = [Pando::ForkSafety.unregister(:a), Pando::ForkSafety.unregister(:a)]
      fork_and_wait
      [removed, %i[a b].map { |key| Pando::ForkSafety.registered?(key) }, sides(notes)]
    end

    assert_equal [[true, false], [false, true], [["before b", "parent b"], ["child b"]]], result
  end

  def test_an_error_before_refuses_the_fork_and_undoes_what_was_prepared
    line = __LINE__ + 2
    noted, error = with_notes(:a) do |notes|
      notes.register(:b, before: -> { raise ArgumentError, "not now" })
      notes.register(:c)
      begin
        fork { leave }
      rescue Pando::ForkSafety::ForkRefused => e
        error = [e.message, e.key, e.location, e.cause.class]
      end
      [notes.ours, [*error, error_of { Process.wait }].map(&:to_s)]
    end

    here = "#{__FILE__}:#{line}"
    assert_equal ["before c", "parent c"], noted
    assert_equal ["callback b before a fork at #{here} raised ArgumentError: not now", "b", here, "ArgumentError",
                  "Errno::ECHILD"], error
  end

  def test_an_error_afterwards_is_told_and_keeps_nobody_from_running
    told, result, pid = in_child do
      notes = Notes.new
      notes.register(:a, parent: -> { raise NotImplementedError, "a" }, child: -> { raise "a" })
      notes.register(:b)
      told = []
      Pando::ForkSafety.on_callback_failure do |failure|
        told << failure.side
        notes.write("told #{failure.key}")
      end
      pid = fork { leave }
      [told, Process.wait(pid) && sides(notes), pid]
    end

    assert_operator pid, :>, 1
    assert_equal ["parent"], told
    assert_equal [["before b", "before a", "parent b", "told a"], ["child b", "told a"]], result
  end

  def test_a_listener_that_raises_harms_nobody
    pid = nil
    _, output = capture_subprocess_io do
      pid = in_child do
        Pando::ForkSafety.register(:a, parent: -> { raise "broken" })
        Pando::ForkSafety.on_callback_failure { raise "too" }
        fork_and_wait
      end
    end

    assert_operator pid, :>, 1
    assert_match(/callback a .*broken.*raised RuntimeError: too/m, output)
  end

  # A timeout, say, in the middle of the preparations.
  def test_what_is_interrupted_before_the_fork_is_undone
    result = with_notes(:a) do |notes|
      notes.register(:b, before: -> { throw :interrupted })
      notes.register(:c)
      catch(:interrupted) { fork { leave } }
      [notes.ours, error_of { Process.wait }]
    end

    assert_equal [["before c", "parent b", "parent c"], "Errno::ECHILD"], result
  end

  def test_without_a_listener_it_is_told_on_stderr
    _, output = capture_subprocess_io do
      in_child do
        Pando::ForkSafety.register("statistics", parent: -> { raise "broken" })
        fork_and_wait
      end
    end

    line = /\Apando: callback statistics in the parent after a fork at .*_test\.rb:\d+ raised RuntimeError: broken$/
    assert_match(line, output)
  end

  def test_what_ends_a_process_is_passed_on_when_all_have_run
    result = with_notes(:a) do |notes|
      notes.register(:b, parent: -> { exit(3) })
      notes.register(:c)
      begin
        fork { leave }
      rescue SystemExit => e
        status = e.status
      end
      Process.wait
      [status, notes.ours]
    end

    assert_equal [3, ["before c", "before b", "before a", "parent a", "parent c"]], result
  end

  def test_a_fork_that_fails_is_undone
    result = with_notes(:a) do |notes|
      [error_of { Callbacks.around(:fork) { raise Errno::ENOMEM } }, notes.ours]
    end

    assert_equal ["Errno::ENOMEM", ["before a", "parent a"]], result
  end

  def test_a_fork_in_a_callback_runs_no_callbacks
    result = with_notes(:a) do |notes|
      notes.register(:b, before: -> { fork_and_wait }, parent: -> { fork_and_wait }, child: -> { fork_and_wait })
      fork_and_wait
      sides(notes)
    end

    assert_equal [["before a", "parent a"], ["child a"]], result
  end

  def test_nested_forks
    noted = with_notes(:a) do |notes|
      Process.wait(fork { Process.wait(fork { Process.wait(fork { leave }) && leave }) && leave })
      notes.take.map { |line| line.split.first }.tally
    end

    assert_equal({ "before" => 3, "parent" => 3, "child" => 3 }, noted)
  end

  def test_forks_of_threads_take_turns
    most = in_child do
      within = 0
      most = 0
      Pando::ForkSafety.register(:a, before: -> { most = [most, within += 1].max }, parent: -> { within -= 1 })
      Pando::ForkSafety.register(:b, before: -> { Thread.pass }, parent: -> { Thread.pass })
      Array.new(8) { Thread.new { 5.times { fork_and_wait } } }.each(&:join)
      [most, within]
    end

    assert_equal [1, 0], most
  end

  # A program of its own: what a trap handler raises ends it.
  def test_a_trap_handler_may_fork
    script = <<~RUBY
      Pando::ForkSafety.register(:a, before: -> { print "b" }, parent: -> { print "p" }, child: -> { print "c" })
      $stdout.sync = true
      trap("USR1") { Process.wait(fork { exit!(0) }) }
      Process.kill("USR1", Process.pid)
    RUBY
    output, status = Open3.capture2e(RbConfig.ruby, "-I", Support::Checkout.path("lib"), "-rpando/fork_safety",
                                     "-e", script)

    assert_predicate status, :success?, output
    assert_equal %w[b c p], output.chars.sort
  end

  def test_nothing_to_call_is_refused
    assert_raises(ArgumentError) { Pando::ForkSafety.register(:a) }
    assert_raises(ArgumentError) { Pando::ForkSafety.register(:a, child: :reconnect) }
    refute Pando::ForkSafety.registered?(:a)
  end

  def test_it_works_without_the_server
    lib = Support::Checkout.path("lib")
    script = "require 'pando/fork_safety'; puts $LOADED_FEATURES.grep(/\\A\#{Regexp.escape(ARGV[0])}/)"
    output, status = Open3.capture2e(RbConfig.ruby, "-w", "-I", lib, "-e", script, lib)
    parts = "fork_safety|sys|native|platform|pando_ext|errors|version|\\d"
    others = output.lines(chomp: true).grep_v(%r{/pando/(?:#{parts})})

    assert_predicate status, :success?, output
    assert_empty others
  end
end
