# frozen_string_literal: true

require "test_helper"
require "pando/swarm/runner_lint"

class RunnerLintTest < Minitest::Test
  # Keeps all rules: one thread that takes jobs from a queue of this process.
  class Good
    attr_reader :progress

    def initialize(node = nil)
      @node = node
      @progress = 0
      @busy = false
    end

    def start
      @jobs = Queue.new
      @thread = Thread.new { work }
    end

    def quiet = @jobs.close
    def stop = @thread.join
    def busy? = @busy
    def give = @jobs.push(:job)

    private

    def work
      while @jobs.pop
        @busy = true
        @progress += 1
        @busy = false
      end
    end
  end

  def test_nothing_is_said_against_one_that_keeps_the_rules
    assert_empty(check { Good.new })
    made = []
    assert_empty check(work: -> { made.last.give }, queues: %w[a], concurrency: 3, options: { color: "red" }) { |node|
      made << Good.new(node)
      assert_equal ["lint", 0, 3, %w[a], { color: "red" }],
                   [node.kind, node.number, node.concurrency, node.queues, node.options]
      made.last
    }
    assert_equal 2, made.size # and another one in a process of its own
  end

  def test_what_it_must_answer
    assert_equal(["it lacks start, quiet, stop, busy?, progress"], check { Object.new })
    assert_match(/\Amaking it raised RuntimeError: no \(/, check { raise "no" }.first)
    assert_match(/\Astart raised NoMethodError/, check { with(:start) { nil.connect } }.first)
  end

  def test_what_is_started_before_its_time
    pipe = nil
    problems = check(settle: 0.1) { with(:initialize) { |*| super().tap { pipe = IO.pipe } } }
    assert_equal 2, problems.grep(/\Amade and not yet started: descriptor \d+ is left: pipe:/).size, problems
  ensure
    pipe&.each(&:close)
  end

  def test_threads_that_are_left
    problems = check(settle: 0.1) { with(:stop) { super().then { (@other = Thread.new { sleep }).name = "late" } } }
    assert_equal 1, problems.size
    assert_match(/\Aafter stop thread "late" is left \(.*runner_lint_test\.rb:\d+\)\z/, problems.first)
  ensure
    Thread.list.each { |thread| thread.kill.join if thread.name == "late" }
  end

  def test_descriptors_that_are_left
    file = nil
    problems = check(settle: 0.1) { with(:stop) { super().tap { file = File.new(__FILE__) } } }
    assert_match(/\Aafter stop descriptor \d+ is left: #{Regexp.escape(__FILE__)}\z/, problems.first)
  ensure
    file&.close
  end

  def test_handlers_of_signals_belong_to_the_node
    before = trap("TTIN", "DEFAULT")
    problems = check(settle: 0.1) { with(:start) { super().tap { trap("TTIN") { nil } } } }
    assert_equal ["after stop the handler of TTIN has changed"], problems
  ensure
    trap("TTIN", before || "DEFAULT")
  end

  def test_progress
    assert_equal(["progress must be an Integer, but is nil"], check { with(:progress) { nil } })
    falling = 10
    assert_equal(["progress fell from 9 to 8"], check { with(:progress) { falling -= 1 } })
    assert_equal ["progress did not grow within 0.05 s, although there was work"],
                 check(within: 0.05, work: -> {}) { Good.new }
  end

  def test_what_it_may_answer
    problems = check do
      with(:busy?) { nil }.tap { |one| one.define_singleton_method(:lag) { "many" } }
    end
    assert_equal ["busy? must be true or false, but is nil", "lag must be Integer or NilClass, but is \"many\""],
                 problems.uniq
    problems = check { with(:healthy?) { "no" } }
    assert_equal ["healthy? says right after start: no", "healthy? says after quiet: no"], problems
  end

  def test_one_that_does_not_come_to_rest
    assert_equal ["busy? is still true 0.05 s after quiet"], check(within: 0.05) { with(:busy?) { true } }
    problems = check { with(:quiet) { (@told = !@told) ? super() : raise } }
    assert_match(/\Aa second quiet raised RuntimeError/, problems.first)
  end

  def test_one_that_works_only_once_or_only_in_one_process
    lives = 0
    assert_equal(["the second one in the same process: progress must be an Integer, but is nil"],
                 check { (lives += 1) == 2 ? with(:progress) { nil } : Good.new })
    here = Process.pid
    assert_equal(["in a forked process: progress must be an Integer, but is nil"],
                 check { Process.pid == here ? Good.new : with(:progress) { nil } })
    assert_equal(["in a forked process: the process ended without a report"],
                 check { Process.pid == here ? Good.new : exit! })
  end

  def test_it_needs_a_block
    assert_raises(ArgumentError) { Pando::Swarm::RunnerLint.check }
  end

  private

  def check(**options, &block) = Pando::Swarm::RunnerLint.check(**options, &block)

  # A good one, but for one method.
  def with(name, &body) = Class.new(Good) { define_method(name, &body) }.new
end
