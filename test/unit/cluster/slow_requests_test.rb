# frozen_string_literal: true

require "test_helper"
require "pando/cluster/monitor"

# What the monitor makes of requests that last long: whom it asks, and what it takes for an answer.
class SlowRequestsTest < Minitest::Test
  Options = Struct.new(:slow, :jobs)

  # Stands for a row of the scoreboard with one job.
  Row = Struct.new(:since, :name, :streams) do
    def busy_since(_number) = since
    def streaming?(_number) = streams
  end

  # Stands for a worker, which is this process.
  Worker = Struct.new(:row, :threads, :signals) do
    def identity = { slot: 3, generation: 2, pid: pid }
    def pid = Process.pid
    def gone? = false
    def job_name(_number) = row.name.join(" ")
    def signal(name) = signals << name
  end

  def setup
    @worker = Worker.new(Row.new(100.25, ["GET", "/first"], false), 1, [])
    terms = Pando::SlowEntry::Terms.new(2.0, "/tmp/slow.log", :text)
    @slow = Pando::Cluster::SlowRequests.new(Options.new(terms, false), "web")
    @told = []
    @subscription = Pando::Events.subscribe { |event| @told << event }
  end

  def teardown = Pando::Events.unsubscribe(@subscription)

  def look(at, number = 0) = @slow.look(@worker, number, at)
  def answer(text) = @slow.answered(@worker, text)
  def asked = @worker.signals.size
  def told = @told.map { |event| event.payload.slice(:request, :location, :reason) }

  def test_it_asks_at_each_doubling
    [101.0, 102.24].each { |now| look(now) }
    assert_equal 0, asked
    look(102.26)
    assert_equal 1, asked
    answer("0 100250000 app.rb:1")
    [102.5, 104.2].each { |now| look(now) }
    assert_equal 1, asked
    look(104.3)
    assert_equal 2, asked
  end

  def test_it_tells_once
    look(102.3)
    answer("0 100250000 app.rb:1")
    look(104.3)
    answer("0 100250000 app.rb:2")

    assert_equal [{ request: "GET /first", location: "app.rb:1" }], told
    assert_equal(["app.rb:2"], @slow.recent.map { |one| one[:location] })
  end

  def test_a_worker_that_does_not_answer
    look(102.3)
    look(102.6)
    assert_empty told
    look(102.75)
    assert_match(/native code \(state \w, [\d.]+ of a core/, told.first[:reason])
    answer("0 100250000 app.rb:1")

    assert_equal 1, told.size
    assert_match(/native code/, @slow.recent.last[:reason])
    assert_equal "app.rb:1", @slow.recent.last[:location]
  end

  # Each of them may have the interpreter lock first.
  def test_a_worker_with_threads_has_more_time
    @worker.threads = 5
    look(102.3)
    [102.75, 103.05].each { |now| look(now) }
    assert_empty told
    look(103.15)

    assert_equal 1, told.size
  end

  # The next request has begun on the same thread.
  def test_an_answer_about_another_request
    look(102.3)
    @worker.row.since = 102.4
    @worker.row.name = ["GET", "/second"]
    ["0 102400000 app.rb:1", "7 100250000 x", "nonsense", "", "0"].each { |text| answer(text) }
    assert_empty told
    answer("0 100250000 app.rb:1")

    assert_equal(["GET /first"], told.map { |one| one[:request] })
  end

  def test_the_end_of_a_request
    look(102.3)
    answer("0 100250000 app.rb:1")
    told = @told.size
    @slow.over(@worker, "0 100250000 6218 200")

    assert_equal([[6.218, true, 200, "app.rb:1"]],
                 @slow.recent.map { |one| one.values_at(:seconds, :ended, :status, :location) })
    assert_equal(told, @told.size)
  end

  def test_nonsense_about_the_end_of_a_request
    look(102.3)
    answer("0 100250000 app.rb:1")
    before = @slow.recent.dup
    ["0 100250000", "0 100250000 x", "0 100250000 -4 200", "0 100250000 #{10**13} 200", "1 100250000 5 200", "", "x"]
      .each { |text| @slow.over(@worker, text) }

    assert_equal(before, @slow.recent)
  end

  def test_streams_and_nodes_are_left_out
    @worker.row.streams = true
    look(200.0)

    assert_equal 0, asked
    refute_predicate Pando::Cluster::SlowRequests.new(Options.new(@slow.path, true)), :on?
  end
end
