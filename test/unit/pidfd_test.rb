# frozen_string_literal: true

require "test_helper"
require "open3"
require "pando/pidfd"
require_relative "sys/support/in_child"

class PidfdTest < Minitest::Test
  include SysSupport::InChild

  Pidfd = Pando::Pidfd
  LIB = File.expand_path("../../lib", __dir__)

  def setup
    @made = []
  end

  def teardown
    @made.each do |pidfd|
      next if pidfd.closed?

      pidfd.signal("KILL")
      pidfd.cleanup(PATIENCE)
    end
  end

  def child(&block)
    Pidfd.new(fork(&block || proc { sleep(PATIENCE) })).tap { |pidfd| @made << pidfd }
  end

  # A grandchild, which is nobody's child here: it lives as long as the pipe is held open.
  def stranger
    reader, @line = IO.pipe
    pid, report = IO.pipe
    middle = fork do
      @line.close
      report.puts(fork { leave(reader.read.size) })
      leave
    end
    reader.close
    Process.wait(middle)
    Pidfd.new(Integer(pid.gets)).tap { pid.close && report.close }
  end

  def zombie?(pid) = File.read("/proc/#{pid}/stat").rpartition(") ").last.start_with?("Z")

  def test_the_life_of_a_child
    pidfd = child

    assert_predicate pidfd, :alive?
    assert_nil pidfd.wait(0)
    assert_nil pidfd.ending
    assert pidfd.signal("TERM")
    assert_equal "signal TERM", pidfd.cleanup(PATIENCE).to_s
    refute_predicate pidfd, :alive?
    refute pidfd.signal("KILL")
    assert_predicate pidfd, :closed?
    assert_equal "signal TERM", pidfd.wait.to_s
    assert_raises(Errno::ECHILD) { Process.wait(pidfd.pid) }
  end

  def test_how_it_ended
    ending = child { leave(3) }.wait(PATIENCE)

    assert_equal [:exited, 3, "status 3"], [ending.kind, ending.number, ending.to_s]
    assert_predicate ending, :known?
    assert_predicate child { leave }.wait(PATIENCE), :success?
  end

  def test_a_zombie_is_not_alive_and_is_gone_after_the_cleanup
    pidfd = child { leave }

    assert pidfd.to_io.wait_readable(PATIENCE)
    assert zombie?(pidfd.pid)
    refute_predicate pidfd, :alive?
    refute pidfd.signal("TERM")
    assert_nil pidfd.ending
    assert_match(/ended/, pidfd.inspect)
    assert_predicate pidfd.cleanup, :success?
    refute File.exist?("/proc/#{pidfd.pid}")
  end

  def test_signals_by_any_of_their_names
    ["USR1", :SIGUSR1, Signal.list["USR1"]].each do |signal|
      pidfd = child
      assert pidfd.signal(signal)
      assert_equal "signal USR1", pidfd.wait(PATIENCE).to_s
    end
    pidfd = child
    assert pidfd.signal(0)
    ["NONSENSE", "", nil, -1, 65, 1.5].each { |none| assert_raises(ArgumentError) { pidfd.signal(none) } }
    assert_predicate pidfd, :alive?
  end

  def test_it_takes_part_in_a_select
    living = child
    ended = child { leave }

    assert_equal [[ended], [], []], IO.select([living, ended], nil, nil, PATIENCE)
  end

  # The first one to wake up closes what the others wait for.
  def test_threads_that_wait_and_clean_up_all_learn_the_ending
    20.times do
      pidfd = child
      threads = %i[cleanup wait wait cleanup].map { |how| Thread.new { pidfd.public_send(how, PATIENCE) } }
      wait_until(timeout: PATIENCE) { threads.all?(&:stop?) }
      pidfd.signal("KILL")

      assert_equal(["signal KILL"] * 4, threads.map { |thread| thread.value.to_s })
      assert_predicate(pidfd, :closed?)
    end
  end

  def test_threads_that_wait_all_learn_the_ending_and_others_go_on
    pidfd = child
    threads = Array.new(5) { Thread.new { pidfd.wait(PATIENCE) } }
    wait_until(timeout: PATIENCE) { threads.all?(&:stop?) } # they wait, and this thread runs

    pidfd.signal("KILL")
    assert_equal(["signal KILL"] * 5, threads.map { |thread| thread.value.to_s })
  end

  def test_a_process_that_is_nobodys_child_here
    pidfd = stranger

    assert_predicate pidfd, :alive?
    assert pidfd.signal(0)
    assert_nil pidfd.wait(0.001)
    assert_predicate pidfd, :alive?
    @line.close # it leaves with status 0, which is its parent's to know
    ending = pidfd.wait(PATIENCE)

    assert_equal "status unknown", ending.to_s
    refute_predicate ending, :known?
    refute_predicate pidfd, :alive?
  ensure
    pidfd&.close
  end

  def test_a_child_that_another_waited_for
    pidfd = child { leave }
    Process.wait(pidfd.pid)

    refute_predicate pidfd.wait, :known?
    refute pidfd.signal("TERM")
  end

  # In a pid namespace of its own, where the next pid can be chosen without harm to others.
  REUSE = <<~RUBY
    again = nil
    pidfd = Pando::Pidfd.new(pid = fork { exit! })
    Process.wait(pid)
    100.times do # another thread of this Ruby may be given it
      File.write("/proc/sys/kernel/ns_last_pid", (pid - 1).to_s)
      break if (again = fork { sleep }) == pid
    end
    print [again == pid, pidfd.alive?, pidfd.signal("KILL"), Pando::Pidfd.new(again).alive?].inspect
  RUBY

  def test_a_pid_that_is_used_again_is_another_process
    said, status = Open3.capture2e({ "RUBYOPT" => nil }, "unshare", "--pid", "--fork", "--kill-child", Gem.ruby,
                                   "-I", LIB, "-rpando/pidfd", "-e", REUSE)
    skip "no pid namespace here: #{said}" unless status.success?

    assert_equal "[true, false, false, true]", said
  rescue Errno::ENOENT
    skip "no unshare(1) here"
  end

  def test_another_users_process_may_be_looked_at_but_not_signalled
    skip "needs root" unless Process.uid.zero?
    outcome = in_child do
      ours = Pidfd.new(Process.ppid)
      Process::UID.change_privilege(65_534)
      [ours.alive?, error_of { ours.signal("TERM") }]
    end

    assert_equal [true, "Errno::EPERM"], outcome
  end

  def test_what_is_no_process
    pid = fork { leave }
    Process.wait(pid)
    assert_includes assert_raises(Errno::ESRCH) { Pidfd.new(pid) }.message, "process #{pid}"
    [0, -1, 2**31, 2**70, nil, "1"].each { |none| assert_raises(ArgumentError) { Pidfd.new(none) } }
  end

  def test_who_lets_go_of_it_cannot_ask
    pidfd = child
    spare = Pidfd.new(pidfd.pid)
    spare.close

    assert_predicate spare, :closed?
    [-> { spare.alive? }, -> { spare.signal("TERM") }, -> { spare.wait(0) },
     -> { spare.to_io }].each { |one| assert_raises(IOError, &one) }
    assert_match(/closed/, spare.inspect)
    assert_predicate pidfd, :alive?
  end

  def test_a_forked_child_has_a_copy_to_look_and_signal_with
    pidfd = child
    seen = in_child { [pidfd.alive?, pidfd.signal("USR2"), pidfd.wait(PATIENCE).to_s, pidfd.alive?] }

    assert_equal [true, true, "status unknown", false], seen
    assert_equal "signal USR2", pidfd.wait(PATIENCE).to_s
  end

  def test_no_program_inherits_it
    assert_predicate child.to_io, :close_on_exec?
  end

  def test_the_collector_closes_what_was_forgotten
    before, after = in_child do
      pid = fork { sleep(PATIENCE) }
      before = Dir.children("/proc/self/fd").size
      50.times { Pidfd.new(pid) }
      GC.start
      after = Dir.children("/proc/self/fd").size
      Process.kill(:KILL, pid)
      Process.wait(pid)
      [before, after]
    end

    assert_operator after, :<, before + 25
  end

  def test_it_is_supported_here
    assert_predicate Pidfd, :supported?
  end

  def test_it_loads_nothing_else_of_pando
    program = 'require "pando/pidfd"; puts $".grep(%r{/lib/pando/.*rb\z}).map { |path| File.basename(path) }'
    loaded, status = Open3.capture2({ "RUBYOPT" => nil }, Gem.ruby, "-w", "-I", LIB, "-e", program)

    assert_predicate status, :success?
    loaded = loaded.lines(chomp: true) - %w[version.rb] # which Bundler reads
    assert_equal %w[platform.rb native.rb pidfd.rb pidfd.rb], loaded
  end
end
