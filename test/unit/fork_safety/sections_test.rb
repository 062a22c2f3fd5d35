# frozen_string_literal: true

require "test_helper"
require "pando/fork_safety"

class ForkSafetySectionsTest < Minitest::Test
  Sections = Pando::ForkSafety::Sections

  def setup
    @threads = []
  end

  def teardown
    @threads.each(&:kill).each(&:join)
    assert_empty Sections::INSIDE
    assert_empty Sections::FORKING
  end

  # A thread inside of a section, until something is pushed into the queue that is returned.
  def inside(nesting: 1)
    entered = Queue.new
    over = Queue.new
    block = -> { entered.push(true) && over.pop }
    nesting.times { |_| block = nest(block) }
    @threads << Thread.new(&block)
    entered.pop
    over
  end

  def nest(block) = -> { Pando.prevent_fork { block.call } }

  # Seconds after which a child hangs, and how often it is forked anew then. In the child, Ruby 3.4 locks a mutex of
  # each other thread (threadptr_interrupt_exec_cleanup in its thread.c). If a thread had it locked at the fork, which
  # is seldom, the child hangs.
  HANGS = 20
  FORKS = 3

  # The exit status of a child that runs the block.
  def in_child(forks: FORKS, &block)
    pid = fork do
      exit!(block.call ? 0 : 1)
    ensure
      exit!(2)
    end
    ended = Process.detach(pid).join(HANGS) and return ended.value.exitstatus

    Process.kill(:KILL, pid)
    forks > 1 ? in_child(forks: forks - 1, &block) : flunk("#{FORKS} children in a row hang")
  end

  def forking_thread
    Thread.new { in_child { true } }.tap do |thread|
      thread.report_on_exception = false
      @threads << thread
      wait_until { Sections::FORKING.any? || !thread.alive? }
    end
  end

  def test_it_returns_what_its_block_returns
    assert_equal(42, Pando.prevent_fork { 42 })
    assert_raises(IOError) { Pando.prevent_fork { raise IOError } }
    assert_equal 1, catch(:over) { Pando.prevent_fork { throw :over, 1 } }
  end

  def test_a_fork_from_inside_is_refused_with_the_line
    error = assert_raises(Pando::ForkPrevented) { Pando.prevent_fork { fork { exit!(0) } } }

    assert_includes error.message, "prevent_fork at #{__FILE__}:#{__LINE__ - 2}"
    assert_raises(Pando::ForkPrevented) { Pando.prevent_fork { Pando.prevent_fork { 1 } && Process.fork } }
    assert_raises(Pando::ForkPrevented) { Pando.prevent_fork { Process.daemon } }
  end

  def test_a_command_is_no_fork
    assert(Pando.prevent_fork { system("true") })
  end

  def test_a_fork_waits_for_another_threads_section
    over = inside(nesting: 3)
    forker = forking_thread
    assert_predicate forker, :alive?
    over.push(true)

    assert_equal 0, forker.value
  end

  def test_but_not_for_ever
    over = inside
    error = assert_raises(Pando::ForkPrevented) { in_child { true } }

    assert_match(/inside of Pando\.prevent_fork at .*sections_test\.rb:\d+/, error.message)
    over.push(true)
    @threads.each(&:join)
    assert_equal(0, in_child { true })
  end

  # Else a fork could go on between a thread's entry and its first step.
  def test_no_section_begins_while_a_fork_waits
    over = inside
    forker = forking_thread
    late = Queue.new
    @threads << Thread.new { Pando.prevent_fork { late.push(forker.alive?) } }
    over.push(true)

    assert_equal 0, forker.value
    assert_includes [true, false], late.pop, "it is let in afterwards"
  end

  def test_who_is_inside_may_go_deeper_while_a_fork_waits
    entered = Queue.new
    deeper = Queue.new
    @threads << Thread.new { Pando.prevent_fork { entered.push(true) && deeper.pop && Pando.prevent_fork { true } } }
    entered.pop
    forker = forking_thread
    deeper.push(true)

    assert_equal 0, forker.value
  end

  def test_the_child_of_a_fork_without_gate_knows_of_nobody
    assert_equal(0, in_child { Sections::INSIDE.empty? && Sections::FORKING.empty? && Pando.prevent_fork { true } })
  end

  # What a section does is whole in each child.
  def test_never_is_a_section_copied_half_way
    over = false
    pairs = Array.new(3) { [0, 0] }
    @threads = pairs.map do |pair|
      Thread.new { step(pair) until over }
    end
    wait_until { pairs.all? { |pair| pair.first.positive? } }
    halves = Array.new(30) { in_child { pairs.all? { |pair| pair.uniq.one? } } }
    over = true

    assert_equal [0], halves.uniq
  end

  def step(pair)
    Pando.prevent_fork do
      pair[0] += 1
      Thread.pass
      pair[1] += 1
    end
    Thread.pass
  end

  def test_an_interrupted_section_is_left
    over = inside
    @threads.each(&:kill).each(&:join)
    assert_empty Sections::INSIDE
    over.push(true)
  end

  def test_it_can_be_used_in_a_signal_handler
    handled = Queue.new
    before = trap("USR2") { handled.push(Pando.prevent_fork { :inside }) }
    Process.kill("USR2", Process.pid)

    assert_equal :inside, handled.pop
  ensure
    trap("USR2", before)
  end

  def test_it_allocates_nothing
    section = -> { Pando.prevent_fork { nil } }
    10.times { section.call }
    before = GC.stat(:total_allocated_objects)
    100.times { section.call }

    assert_operator GC.stat(:total_allocated_objects) - before, :<, 10
  end
end
