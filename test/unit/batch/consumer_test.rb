# frozen_string_literal: true

require "test_helper"
require "pando/batch/consumer"
require "pando/swarm/runner_lint"

class BatchConsumerTest < Minitest::Test
  PATIENCE = 60

  def setup
    @arrivals = Thread::Queue.new
    @results = Pando::Batch::TimedQueue.new
    @threads = Thread.list
  end

  def teardown
    @consumer&.stop
  end

  # Its broker delivers what the test puts into @arrivals.
  def consumer(**options, &work)
    @consumer = Pando::Batch::Consumer.new(threads: 2, fetch: -> { @arrivals.pop }, wake: -> { @arrivals << nil },
                                           settle: lambda { |result|
                                             @results << result
                                           }, idle: 0, grace: PATIENCE, **options,
                                           &work || proc { |item| item })
  end

  def test_what_is_fetched_is_done_and_settled
    consumer.start
    2.times { |round| @arrivals << [round, 10 + round] }

    assert_equal [[0, 10], [1, 11]], Array.new(2) { @results.pop.done }
    wait_until(timeout: PATIENCE) { !@consumer.busy? && @consumer.in_progress.zero? }
    assert_equal [4, 0], [@consumer.done, @consumer.failed]
    assert_equal 6, @consumer.progress
    assert_nil @consumer.healthy?
  end

  def test_a_message_whose_key_raises_is_a_dead_letter_and_no_more
    dead = Thread::Queue.new
    consumer(key: ->(message) { Integer(message) }, dead_letter: ->(*letter) { dead << letter }).start
    2.times { @arrivals << %w[1 oops 2] }
    results = Array.new(2) { @results.pop(timeout: PATIENCE) || flunk("it has not settled") }

    assert_equal([%w[1 2]] * 2, results.map(&:done))
    assert_equal([["oops", ArgumentError]] * 2, Array.new(2) { dead.pop }.map { |item, error| [item, error.class] })
    assert_nil @consumer.healthy?
  end

  def test_waiting_for_the_broker_is_not_busy_and_quiet_ends_it
    consumer.start
    wait_until(timeout: PATIENCE) { @arrivals.num_waiting == 1 }

    refute_predicate @consumer, :busy?
    2.times { @consumer.quiet }
    wait_until(timeout: PATIENCE) { Thread.list.none? { |thread| thread.name == "fetch" } }
    assert_nil @consumer.healthy?
  end

  def test_after_quiet_what_was_fetched_is_still_done
    gate = Thread::Queue.new
    consumer { |item| gate.pop && item }.start
    @arrivals << [1, 2, 3]
    wait_until(timeout: PATIENCE) { gate.num_waiting == 2 }
    @consumer.quiet

    assert_predicate @consumer, :busy?
    3.times { gate << true }
    assert_equal [1, 2, 3], @results.pop.done
    wait_until(timeout: PATIENCE) { !@consumer.busy? }
  end

  def test_what_is_fetched_after_quiet_is_given_back
    began = Thread::Queue.new
    gate = Thread::Queue.new
    @consumer = Pando::Batch::Consumer.new(threads: 1, fetch: -> { (began << true) && gate.pop }, grace: PATIENCE,
                                           settle: ->(result) { @results << result }) { flunk }
    @consumer.start
    began.pop
    @consumer.quiet
    gate << [1, 2]

    assert_equal [1, 2], @results.pop.unfinished
    refute_predicate @consumer, :busy?
    assert_equal 0, @consumer.done
  end

  def test_a_stop_settles_what_was_done_and_what_was_not
    closed = 0
    began = Thread::Queue.new
    consumer(grace: 0.01, close: -> { closed += 1 }) { |item| (began << true) && item == 1 && sleep }.start
    @arrivals << [1, 2]
    2.times { began.pop }
    wait_until(timeout: PATIENCE) { @consumer.done == 1 }
    @consumer.stop
    result = @results.pop

    assert_equal [[2], [1]], [result.done, result.unfinished]
    assert_equal 1, closed
    assert_empty Thread.list - @threads
    refute_predicate @consumer, :busy?
  end

  def test_what_waits_for_another_attempt_is_not_busy_and_given_back
    consumer(attempts: 2, backoff: PATIENCE..PATIENCE) { |item| item == 1 ? raise("later") : item }.start
    @arrivals << [1, 2]
    wait_until(timeout: PATIENCE) { @consumer.progress == 2 && !@consumer.busy? }
    @consumer.stop
    result = @results.pop

    assert_equal [[2], [1]], [result.done, result.unfinished]
  end

  def test_after_a_stop_it_starts_again
    consumer.start
    @consumer.stop
    @arrivals.clear
    @consumer.start
    @arrivals << [7]

    assert_equal [7], @results.pop.done
  end

  def test_a_broker_that_is_away_is_asked_again
    answers = [-> { raise IOError, "away" }, -> {}, -> { [] }, -> { [5] }, -> { sleep }].to_enum
    _, said = capture_io do
      @consumer = Pando::Batch::Consumer.new(threads: 1, fetch: -> { answers.next.call }, idle: 0, grace: 0.01,
                                             settle: ->(result) { @results << result }) { |item| item }
      @consumer.start
      assert_equal [5], @results.pop.done
      assert_nil @consumer.healthy?
      @consumer.stop
    end

    assert_match(/fetch or settle raised.*away/, said)
    assert_empty Thread.list - @threads
  end

  def test_pauses_grow_until_a_round_has_succeeded
    script = %i[away items settled away items refused refused settled away items refused refused settled none items
                refused settled]

    assert_equal [0.5, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 0.5], pauses(script)
  end

  def test_a_settle_that_raised_is_repeated_with_the_same_result_before_the_next_fetch
    calls = Thread::Queue.new
    answers = [-> { raise IOError, "refused" }, -> {}].to_enum
    capture_io do
      @consumer = Hasty.new(threads: 1, idle: 0, wake: -> { @arrivals << nil },
                            fetch: -> { (calls << :fetch) && @arrivals.pop },
                            settle: ->(result) { (calls << result) && answers.next.call }) { |item| item }
      @consumer.start
      @arrivals << [1, 2]
      wait_until(timeout: PATIENCE) { @arrivals.num_waiting == 1 && calls.size == 4 }
    end
    first, one, two, last = Array.new(4) { calls.pop }

    assert_equal %i[fetch fetch], [first, last]
    assert_same one, two
    assert_equal [1, 2], two.done
    assert_equal 4, @consumer.progress # two items, and two calls of settle
    assert_nil @consumer.healthy?
  end

  # As with Kafka, whose broker excludes a member that does not poll.
  def test_a_settle_that_can_only_succeed_after_the_next_fetch
    calls = []
    _, said = capture_io do
      @consumer = Hasty.new(threads: 1, idle: 0, fetch: -> { (calls << :fetch) && [calls.count(:fetch)] },
                            settle: lambda { |result|
                              calls << result.done
                              raise "rejoin with poll" if calls.count(:fetch) == 1

                              (@results << true) && sleep
                            }) { |item| item }
      @consumer.start
      assert @results.pop(timeout: PATIENCE)
    end

    assert_equal [:fetch, *[[1]] * 5, :fetch, [2]], calls
    assert_equal 1, said.scan("gives a result up: its broker will deliver it again").size
    assert_equal 7, @consumer.progress # two items, and the calls of settle that have ended
  end

  # The next offset that is committed would cover the unfinished item, which nobody would deliver again.
  def test_an_unfinished_item_whose_result_cannot_be_settled_ends_the_consumer
    fetches = 0
    _, said = capture_io do
      @consumer = Hasty.new(threads: 1, attempts: 1, idle: 0, fetch: -> { [fetches += 1] },
                            dead_letter: ->(*) { raise IOError, "away" },
                            settle: ->(result) { (@results << result) && raise(IOError, "away") }) { raise "poison" }
      @consumer.start
      wait_until(timeout: PATIENCE) { @consumer.healthy? }
    end

    assert_equal [1, 5], [fetches, @results.size]
    assert_equal [1], @results.pop.unfinished
    assert_match(/the thread that fetches has ended:.*items are unfinished/m, said)
    assert_match(/has died/, @consumer.healthy?)
  end

  def test_a_settle_that_raised_gets_one_more_try_at_a_stop
    calls = Thread::Queue.new
    closed = false
    capture_io do
      consumer(close: -> { closed = true }, settle: ->(result) { (calls << result.done) && raise("refused") }).start
      @arrivals << [1]
      wait_until(timeout: PATIENCE) { calls.size == 1 }
      assert_predicate @consumer, :busy?
      @consumer.stop
    end

    assert_equal [[1], [1]], Array.new(calls.size) { calls.pop }
    assert closed
    refute_predicate @consumer, :busy?
    assert_empty Thread.list - @threads
  end

  def test_a_dead_fetcher_is_told
    consumer.start
    wait_until(timeout: PATIENCE) { @arrivals.num_waiting == 1 }
    Thread.list.find { |thread| thread.name == "fetch" }.kill.join

    assert_match(/has died/, @consumer.healthy?)
  end

  def test_a_fetch_that_cannot_ever_work_is_told_too
    _, said = capture_io do
      @consumer = Pando::Batch::Consumer.new(threads: 1, fetch: -> { raise NotImplementedError, "none" }) { nil }
      @consumer.start
      wait_until(timeout: PATIENCE) { @consumer.healthy? }
      @consumer.stop
    end

    assert_match(/has ended:.*none/, said)
    assert_empty Thread.list - @threads
  end

  def test_it_keeps_the_rules_of_runners
    jobs = Thread::Queue.new
    fetch = -> { [jobs.pop(true)] unless jobs.empty? }
    problems = Pando::Swarm::RunnerLint.check(work: -> { 3.times { |job| jobs << job } }, within: PATIENCE) do |node|
      Pando::Batch::Consumer.new(threads: node.concurrency, idle: 0.001, fetch: fetch) { |item| item }
    end

    assert_empty problems
  end

  def test_its_own_threads_cannot_stop_it
    errors = []
    consumer(settle: lambda { |result|
      attempt_stop(errors)
      @results << result
    }) { attempt_stop(errors) }.start
    2.times { @arrivals << [1] }
    2.times { @results.pop }

    assert_equal [ThreadError] * 4, errors.map(&:class)
    assert_nil @consumer.healthy?
  end

  # Notes its pauses instead of making them.
  class Hasty < Pando::Batch::Consumer
    def pauses = @pauses ||= []

    private

    def pause(seconds) = pauses << seconds
  end

  # @param script [Array<Symbol>] :away: `fetch` raises, :none: it brings no items; :refused: `settle` raises
  # @return [Array<Float>] the pauses after errors
  def pauses(script)
    ended = Thread::Queue.new
    fetch = lambda do
      step = script.shift || ((ended << true) && sleep)
      step == :away ? raise(IOError, "away") : [(1 unless step == :none)].compact
    end
    capture_io do
      @consumer = Hasty.new(threads: 1, fetch: fetch, idle: 0, grace: 0.01,
                            settle: ->(_) { raise IOError, "refused" if script.shift == :refused }) { |item| item }
      @consumer.start
      ended.pop
      @consumer.stop
    end
    @consumer.pauses.select(&:positive?)
  end

  def attempt_stop(errors)
    @consumer.stop
  rescue ThreadError => e
    errors << e
  end

  def test_what_it_is_not_made_of
    { fetch: nil, settle: 5, wake: 5, close: 5, key: 5, idle: "x", threads: "2" }.each do |name, wrong|
      error = assert_raises(ArgumentError) { consumer(name => wrong) }
      assert_match(/\A#{name}: must be /, error.message)
    end
  end

  def test_without_work_there_is_no_consumer
    assert_raises(ArgumentError) { Pando::Batch::Consumer.new(threads: 1, fetch: -> {}) }
  end
end
