# frozen_string_literal: true

require "test_helper"
require "pando/admin/app"
require "pando/admin/history"
require "pando/sys/memory"
require "tempfile"

# What the dashboard shows of the past.
class AdminHistoryTest < Minitest::Test
  History = Pando::Admin::History
  Usage = Pando::Sys::Memory::Usage
  SURVEY = { 10 => Usage.new(30, 10, 90), 11 => Usage.new(20, 5, 80) }.freeze

  # Gives a snapshot whose time and counts the test chooses.
  class FakeMonitor
    attr_accessor :seconds, :requests, :errors

    def initialize
      @seconds = @requests = @errors = 0
    end

    def snapshot
      snapshot = Pando::Admin::Snapshot.new(records)
      snapshot.instance_variable_set(:@taken_at, 1000.0 + seconds)
      snapshot
    end

    def records
      [["server", { "pid" => "1", "workers" => "2", "ready" => "2", "state" => "serving", "uptime" => "5" }],
       ["counters", { "requests" => "1" }],
       ["responses", { "method" => "GET", "counts" => "0,0,#{requests},0,0,#{errors}" }],
       ["times", { "kind" => "duration", "seconds" => "1", "first" => "0", "counts" => "0,0,0,0,0,0,0,0,#{requests}" }],
       ["work", { "threads" => "5" }], ["group", { "role" => "worker", "state" => "busy", "count" => "1" }],
       ["pids", { "role" => "worker", "generation" => "2", "pids" => "10" }],
       ["pids", { "role" => "mold", "generation" => "3", "pids" => "12" }],
       ["pids", { "role" => "worker", "generation" => "3", "pids" => "11,13" }],
       ["generation", { "number" => "3", "state" => "current", "age" => "2.5" }]]
    end
  end

  def setup
    @monitor = FakeMonitor.new
    @history = History.new(@monitor, SURVEY)
  end

  def past(history = @history) = JSON.parse(history.json)

  # Lets time pass, with so many requests in each second.
  def pass(seconds, rate: 0, errors: 0, step: 10)
    @history.take if @monitor.seconds.zero?
    (seconds / step).times do
      @monitor.seconds += step
      @monitor.requests += rate * step
      @monitor.errors += errors * step
      @history.take
    end
  end

  def test_the_page_keeps_the_same_events
    script = Pando::Admin::Dashboard.read("/dashboard/server.js").last

    assert_equal([History::MILESTONE.source.delete_prefix("\\A"), History::EVENTS.to_s],
                 [script[%r{^const MILESTONE = /\^(.*)/;$}, 1], script[/^const EVENTS = (\d+);$/, 1]])
  end

  def test_a_value_tells_what_happened_since_the_one_before
    pass(10, rate: 4, errors: 1)
    pass(10, rate: 7)
    first, second = past["hour"]

    assert_in_delta(5.0, first["pools"]["web"]["requests"])
    assert_in_delta(1.0, first["pools"]["web"]["errors"])
    assert_in_delta(7.0, second["pools"]["web"]["requests"])
    assert_in_delta(0.0, second["pools"]["web"]["errors"])
    assert_equal({ "busy" => 1, "workers" => 2, "threads" => 5, "generation" => 3 },
                 second["pools"]["web"].slice("busy", "workers", "threads", "generation"))
    assert_in_delta(Pando::Histogram.edge(8), second["pools"]["web"]["p95"], 0.0001)
    assert_equal([{ "worker" => 22 }, 52], second.values_at("private", "shared")) # one is not measured yet
    assert_equal({ "2" => 30, "3" => 60 }, second["pools"]["web"]["memory"])
  end

  # Right after a refork no worker is measured, and a sample without them would show memory that has fallen.
  def test_a_sample_that_lacks_the_memory_of_new_processes_is_not_complete
    @monitor.define_singleton_method(:records) { super().reject { |_, pairs| pairs["role"] == "mold" } }
    measured = { **SURVEY, 1 => Usage.new(1, 1, 1) }

    assert(History.new(@monitor, measured).take(complete: true))
    refute(History.new(@monitor, { 1 => measured[1] }).take(complete: true))
    assert(History.new(@monitor, {}).take)
  end

  def test_without_requests_there_is_no_latency
    pass(10)

    refute_includes(past["hour"].first["pools"]["web"], "p95")
  end

  def test_a_reactor_that_begins_to_count_anew_makes_no_negative_rate
    pass(10, rate: 4)
    @monitor.requests = 0
    pass(10)

    assert_in_delta(0.0, past["hour"].last["pools"]["web"]["requests"])
  end

  def test_a_value_a_minute_for_a_day_and_no_more
    pass(86_400 * 2, step: 30)

    assert_equal([360, 1440], past.values_at("hour", "day").map(&:size))
  end

  def test_many_events_do_not_push_out_those_that_tell_how_the_server_changes
    @history.event("refork.finished", '{"event":"refork.finished"}')
    1000.times { |number| @history.event("worker.ready", %({"event":"worker.ready","slot":#{number}})) }
    @history.event("worker.ready", %({"event":"worker.ready","reason":"#{"x" * 5000}"}))
    events = past["events"]

    assert_equal(["refork.finished", 200, 999], [events.first["event"], events.size - 1, events.last["slot"]])
  end

  def test_it_outlives_its_process
    Tempfile.create do |file|
      @history = History.new(@monitor, SURVEY, file)
      @history.event("refork.finished", '{"event":"refork.finished"}')
      pass(60, rate: 1)

      assert_equal(past, past(History.new(@monitor, SURVEY, file)))
      assert_equal(6, past["hour"].size)
    end
  end

  # The thread that takes samples, and the one that follows the events.
  def test_one_thread_saves_at_a_time
    Tempfile.create do |file|
      history = History.new(@monitor, SURVEY, file)
      inside, gate = Array.new(2) { Queue.new }
      file.define_singleton_method(:truncate) do |size|
        super(size)
        inside << size
        gate.pop
      end
      savers = [Thread.new { history.begin_after(7) }, Thread.new { history.send(:save) }]
      inside.pop
      wait_until { savers.map(&:status) == %w[sleep sleep] }
      assert_empty(inside)
      2.times { gate << :on }
      savers.each(&:join)

      assert_equal(7, History.new(@monitor, SURVEY, file).known)
    end
  end

  def test_a_file_of_another_version_does_not_count
    ["nonsense", "[1]", '{"hour":{}}', '{"hour":[],"day":[],"events":[1]}'].each do |text|
      Tempfile.create do |file|
        file.pwrite(text.bytesize.to_s.rjust(16) + text, 0)

        assert_empty(past(History.new(@monitor, SURVEY, file))["hour"], text)
      end
    end
  end

  # @yieldparam pairs [Hash] of the record about work @yieldreturn [Array<Array(String, Hash)>] records in its place
  def without_a_reactor
    @monitor.define_singleton_method(:records) do
      work = { "requests" => requests.to_s, "failures" => errors.to_s }
      super().reject { |record| %w[counters responses times work].include?(record.first) } + yield(work)
    end
  end

  def test_in_direct_mode_the_workers_count
    without_a_reactor { |work| [["work", work]] }
    pass(10, rate: 4, errors: 1)

    assert_equal([4.0, 1.0], past["hour"].first["pools"]["web"].values_at("requests", "errors"))
  end

  def test_a_job_is_like_a_request
    without_a_reactor do |work|
      [["pool", { "name" => "mail", "kind" => "node", "ready" => "2" }], ["work", { **work, "pool" => "mail" }]]
    end
    pass(10, rate: 4, errors: 1)

    assert_equal([4.0, 1.0], past["hour"].first["pools"]["mail"].values_at("requests", "errors"))
  end

  def test_a_file_that_was_not_written_to_its_end_does_not_count
    Tempfile.create do |file|
      @history = History.new(@monitor, SURVEY, file)
      pass(60)
      file.pwrite(" " * 16, 0)

      assert_empty(past(History.new(@monitor, SURVEY, file))["hour"])
    end
  end
end
