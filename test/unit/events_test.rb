# frozen_string_literal: true

require "test_helper"
require "pando/events"

class EventsTest < Minitest::Test
  def setup
    @handles = []
  end

  def teardown
    @handles.each { |handle| Pando::Events.unsubscribe(handle) }
  end

  def subscribe(name = nil, &block)
    @handles << Pando::Events.subscribe(name, &block)
    @handles.last
  end

  def test_a_subscriber_gets_the_event_it_named_and_no_other
    seen = []
    subscribe("worker.ready") { |event| seen << event }
    Pando::Events.emit("worker.leaving", slot: 1)
    Pando::Events.emit("worker.ready", slot: 2, reason: nil)

    assert_equal ["worker.ready"], seen.map(&:name)
    assert_equal({ slot: 2, reason: nil }, seen.first.payload)
    assert_equal 2, seen.first[:slot]
    assert_nil seen.first[:generation]
    assert_in_delta Time.now, seen.first.time, 5
  end

  def test_a_subscriber_to_all_gets_all_unknown_ones_too
    names = []
    subscribe { |event| names << event.name }
    Pando::Events.emit("worker.ready")
    Pando::Events.emit("nobody.knows")

    assert_equal ["worker.ready", "nobody.knows"], names
  end

  def test_a_symbol_names_an_event_by_its_first_underscore
    names = []
    subscribe(:request_timed_out) { |event| names << event.name }
    Pando::Events.emit("request.timed_out")

    assert_equal ["request.timed_out"], names
  end

  def test_subscribers_are_called_in_order_and_until_unsubscribed
    calls = []
    first = subscribe { calls << :first }
    subscribe { calls << :second }
    Pando::Events.emit("worker.ready")

    assert Pando::Events.unsubscribe(first)
    refute Pando::Events.unsubscribe(first)
    Pando::Events.emit("worker.ready")

    assert_equal %i[first second second], calls
  end

  def test_a_subscriber_that_raises_disturbs_nobody_and_is_told_of_once
    calls = 0
    line = __LINE__ + 1
    subscribe { raise NotImplementedError, "not\nyet" }
    subscribe { calls += 1 }
    _, err = capture_io { 3.times { Pando::Events.emit("worker.ready") } }

    assert_equal 3, calls
    assert_equal 1, err.lines.size, err
    assert_includes err, "#{__FILE__}:#{line}"
    assert_includes err, "NotImplementedError: not\\nyet"
  end

  def test_what_ends_the_process_or_the_request_passes_through_a_subscriber
    [SystemExit, Interrupt, Pando::RequestTimeout].each do |error|
      handle = subscribe { raise error, "now" }

      assert_raises(error) { Pando::Events.emit("worker.ready") }
      Pando::Events.unsubscribe(handle)
    end
  end

  def test_subscribers_may_change_the_list_while_they_are_called
    calls = []
    handle = subscribe do
      calls << :once
      Pando::Events.unsubscribe(handle)
      subscribe { calls << :late }
    end
    2.times { Pando::Events.emit("worker.ready") }

    assert_equal %i[once late], calls
  end

  def test_emit_works_in_a_trap_handler
    seen = Queue.new
    subscribe("workers.scaled") { |event| seen << event[:to] }
    former = trap("USR1") { Pando::Events.emit("workers.scaled", to: 5) }
    Process.kill("USR1", Process.pid)
    wait_until { !seen.empty? }

    assert_equal 5, seen.pop
  ensure
    trap("USR1", former || "DEFAULT")
  end

  def test_subscribers_stay_after_a_fork
    reader, writer = IO.pipe
    subscribe("worker.ready") { |event| writer.syswrite("#{event[:pid]} in #{Process.pid}") }
    pid = fork do
      Pando::Events.emit("worker.ready", pid: Process.pid)
      exit!(0)
    end
    writer.close
    Process.wait(pid)

    assert_equal "#{pid} in #{pid}", reader.read
  ensure
    reader.close
  end

  def test_events_are_frozen_with_their_payload
    event = Pando::Event.new("worker.ready", { slot: 1 })

    assert_predicate event, :frozen?
    assert_predicate event.payload, :frozen?
  end

  def test_a_subscription_needs_a_block
    assert_raises(ArgumentError) { Pando::Events.subscribe("worker.ready") }
  end
end
