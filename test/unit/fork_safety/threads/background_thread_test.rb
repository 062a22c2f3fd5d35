# frozen_string_literal: true

require "test_helper"
require_relative "thread_case"

# Each test has its threads in a child of its own.
class BackgroundThreadTest < Minitest::Test
  include ThreadCase

  def test_it_runs_on_both_sides_and_no_thread_lives_while_the_process_is_copied
    seen, parent, child = in_child do
      diary = Diary.new
      seen = nil
      # Registered first, so it is the last before the fork.
      Safety.register(:spy, before: -> { seen = [Thread.list.size, names.grep(/notes/), names.size] })
      thread = noting(diary)
      other = Safety.thread("more notes") { |me| me.wait(60) until me.stopping? }
      in_fork { (thread << "child") && wait_empty(thread) && leave_when_done(thread, other) }
      diary.gets
      thread << "parent"
      [seen, diary.gets.split == [Process.pid.to_s, "parent"], other.alive?]
    end

    assert_equal [1, []], seen.take(2)
    # The main thread and the interpreter's timer; an older Ruby keeps ended threads for a while.
    assert_operator seen.last, :<=, RUBY_VERSION < "3.3" ? 4 : 2
    assert parent
    assert child
  end

  def test_the_parent_does_everything_once_and_the_child_nothing_of_it
    mine, others = in_child do
      diary = Diary.new
      thread = noting(diary)
      1.upto(400) do |number|
        thread << number
        in_fork { thread.stop } if (number % 20).zero?
      end
      wait_empty(thread)
      thread.stop
      all = diary.to_h
      [all.delete(Process.pid).map(&:to_i), all.values]
    end

    assert_equal (1..400).to_a, mine
    assert_empty others
  end

  def test_a_kept_queue_is_worked_off_by_both
    mine, theirs = in_child do
      diary = Diary.new
      here = Process.pid
      thread = Safety.thread("held", in_child: :keep) do |me|
        me.wait(60) while Process.pid == here && !me.stopping?
        while (item = me.pop)
          diary.note(item)
        end
      end
      3.times { |number| thread << number }
      pid = in_fork do
        wait_empty(thread)
        thread.stop
      end
      rest = thread.stop
      [rest, diary.to_h[pid]]
    end

    assert_equal [0, 1, 2], mine
    assert_equal %w[0 1 2], theirs
  end

  def test_a_daemon_takes_the_queue_along
    left = in_child do
      reader, writer = IO.pipe
      Process.wait(fork do
        thread = Safety.thread("moved") { |me| me.wait(60) until me.stopping? }
        3.times { |number| thread << number }
        Process.daemon(true, true)
        writer.syswrite("#{thread.alive?} #{thread.stop.inspect}\n")
        leave
      end)
      reader.gets
    end

    assert_equal "true [0, 1, 2]\n", left
  end

  def test_a_library_with_a_loop_and_a_queue_of_its_own
    mine, theirs = in_child do
      diary = Diary.new
      queue = Thread::Queue.new
      thread = Safety.thread("own", queue: queue, stop: -> { queue << nil }) do
        while (item = queue.pop)
          diary.note(item)
        end
      end
      queue << "first"
      pid = in_fork do
        queue << "theirs"
        thread.stop
      end
      queue << "second"
      thread.stop
      all = diary.to_h
      [all[Process.pid], all[pid]]
    end

    assert_equal %w[first second], mine
    assert_equal %w[theirs], theirs
  end

  def test_the_copy_of_a_librarys_queue_is_dropped_too
    sizes = in_child do
      queue = Thread::Queue.new
      Safety.thread("own", queue: queue) { |me| me.wait(60) until me.stopping? }
      queue << 1
      reader, writer = IO.pipe
      in_fork { writer.syswrite("#{queue.size}\n") }
      [reader.gets.to_i, queue.size]
    end

    assert_equal [0, 1], sizes
  end

  def test_a_thread_that_forks_itself_goes_on_and_the_others_are_started_again
    result = in_child do
      answers, writer = IO.pipe
      other = Safety.thread("other") { |me| me.wait(60) until me.stopping? }
      forker = Safety.thread("forker") do |me|
        me.pop
        pid = fork do
          writer.syswrite("#{Thread.current.equal?(me.thread)} #{other.alive?} #{Thread.list.size}\n")
          leave
        end
        Process.wait(pid)
        writer.syswrite("forked\n")
        me.pop
      end
      forker << true
      [answers.gets, answers.gets, forker.alive?, other.alive?]
    end

    assert_equal ["true true 2\n", "forked\n", true, true], result
  end

  # Each would wait for the other: it stands still at its fork, and that will do.
  def test_a_thread_that_waits_for_its_turn_to_fork_is_not_waited_for
    result = in_child do
      forks = Thread::Queue.new
      forker = Safety.thread("forker") do |me|
        forks << Process.wait2(fork { leave }).last.success? if me.pop
        me.wait(60) until me.stopping?
      end
      waits = lambda do
        next unless Thread.current == Thread.main

        forker << true
        wait_until { Safety::Callbacks.waits?(forker.thread) }
      end
      Safety.register(:first, before: waits)
      reader, writer = IO.pipe
      in_fork { writer.syswrite("#{forker.alive?} #{Safety::Callbacks.waits?(forker.thread)}\n") }
      [reader.gets, forks.pop, forker.stop]
    end

    assert_equal ["true false\n", true, []], result
  end

  def test_nested_and_double_forks
    result = in_child do
      Pando::Sys.subreaper!
      diary = Diary.new
      thread = noting(diary)
      unless Pando::Sys.fork_sibling
        in_fork { in_fork { thread.push("deep") && wait_empty(thread) && thread.stop } }
        thread << "sibling"
        wait_empty(thread)
        thread.stop
        leave
      end
      Process.wait
      thread << "forker"
      wait_empty(thread)
      thread.stop
      diary.to_h.values.flatten.sort
    end

    assert_equal %w[deep forker sibling], result
  end

  def test_one_that_has_ended_stays_ended
    result = in_child do
      rounds = Thread::Queue.new
      thread = Safety.thread("once") { rounds << true }
      wait_until { !thread.alive? }
      reader, writer = IO.pipe
      in_fork { writer.syswrite("#{thread.alive?}\n") }
      [reader.gets, thread.alive?, rounds.size, Safety.threads.size]
    end

    assert_equal ["false\n", false, 1, 1], result
  end

  def test_one_that_was_stopped_is_forgotten
    result = in_child do
      thread = Safety.thread("done") { |me| me.wait(60) until me.stopping? }
      thread << 1
      [thread.stop, thread.alive?, Safety.threads.size, Safety.registered?(thread)]
    end

    assert_equal [[1], false, 0, false], result
  end

  def test_one_that_fails_on_its_way_out_is_started_again
    result = in_child do
      begun = Thread::Queue.new
      thread = Safety.thread("faulty") do |me|
        Thread.current.report_on_exception = false
        begun << true
        me.wait(60) until me.stopping?
        raise "no more"
      end
      begun.pop
      pid = in_fork { nil }
      [pid.positive?, begun.pop, thread.alive?]
    end

    assert_equal [true, true, true], result
  end

  def test_one_that_has_died_may_be_started_anew
    result = in_child do
      rounds = 0
      thread = Safety.thread("mortal") do |me|
        Thread.current.report_on_exception = false
        raise "no" if (rounds += 1) == 1

        me.wait(60) until me.stopping?
      end
      wait_until { !thread.alive? }
      in_fork { nil }
      dead = !thread.alive?
      thread.start
      wait_until { rounds == 2 }
      [dead, thread.alive?, thread.stop]
    end

    assert_equal [true, true, []], result
  end

  def test_one_with_a_key_takes_the_place_of_the_former_and_its_work
    result = in_child do
      former = Safety.thread("a", key: "statistics") { |me| me.wait(60) until me.stopping? }
      3.times { |number| former << number }
      other = Safety.thread("a") { |me| me.wait(60) until me.stopping? }
      successor = Safety.thread("b", key: "statistics") { |me| me.wait(60) until me.stopping? }
      [former.alive?, other.alive?, successor.alive?, Safety.threads == [other, successor], successor.stop,
       Safety.threads == [other]]
    end

    assert_equal [false, true, true, true, [0, 1, 2], true], result
  end

  def test_a_stop_that_raises_names_the_thread_and_its_line
    line = __LINE__ + 2
    result = in_child do
      Safety.thread("clumsy", stop: -> { raise "oops" }) { |me| me.wait(60) until me.stopping? }
      begin
        fork { leave }
      rescue Safety::ForkRefused => e
        [e.message, Safety.threads.first.alive?]
      end
    end

    assert_equal ["the background thread clumsy before a fork at #{__FILE__}:#{line} raised RuntimeError: oops", true],
                 result
  end

  def test_its_queue_has_an_end
    result = in_child do
      thread = Safety.thread("full", limit: 2) { |me| me.wait(60) until me.stopping? }
      Array.new(3) { |number| thread.push(number) }.push(thread.stop)
    end

    assert_equal [true, true, false, [0, 1]], result
  end

  def test_pop_and_wait_have_an_end
    result = in_child do
      answers = Thread::Queue.new
      Safety.thread("brief") { |me| answers << me.pop(0.01) << me.wait(0.01) }
      [answers.pop, answers.pop]
    end

    assert_equal [nil, false], result
  end

  def test_what_it_is_told_must_make_sense
    assert_raises(ArgumentError) { Safety.thread("no block") }
    [{ in_child: :share }, { late: :ignore }, { queue: 1 }].each do |wrong|
      assert_raises(ArgumentError) { Safety.thread("wrong", **wrong) { flunk } }
    end
    assert_empty Safety.threads
  end

  private

  def leave_when_done(*threads) = threads.each(&:stop)
end
