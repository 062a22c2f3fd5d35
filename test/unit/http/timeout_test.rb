# frozen_string_literal: true

require "test_helper"
require "pando/http/timeout"
require_relative "../cluster/support/clock"
require_relative "support/fake_worker"
require_relative "support/served_work"

# Its clock, which stands still while it is suspended.
class HTTPSuspendedTimeoutTest < Minitest::Test
  include ClusterSupport::Clock

  def test_suspended_it_neither_runs_out_nor_fires
    worker = HTTPSupport::FakeWorker.new
    timeout = Pando::HTTP::Timeout.new(worker, 10.0, 2.0)
    elapse(4)
    result = timeout.suspend do
      timeout.fire
      elapse(1000)
      :result
    end

    assert_equal :result, result
    assert_in_delta 6.0, timeout.remaining
    calls = worker.calls.map { |name, soft, hard| [name, soft&.round(3), hard&.round(3)] }
    assert_equal [[:job_deadline, nil, nil], [:job_deadline, 6.0, 8.0]], calls
    assert_raises(Pando::RequestTimeout) { timeout.fire }
  end
end

# env["pando.timeout"] as the application sees it.
class HTTPTimeoutTest < Minitest::Test
  def setup
    @worker = HTTPSupport::FakeWorker.new
    @timeout = Pando::HTTP::Timeout.new(@worker, 10.0, 2.0)
  end

  def test_what_remains
    assert_in_delta 10.0, @timeout.remaining, 1
    assert_operator @timeout.remaining, :<=, 10.0
  end

  def test_extending_moves_the_kill_too
    left = @timeout.extend_by(5)

    assert_in_delta 15.0, left, 1
    assert_in_delta 15.0, @timeout.remaining, 1
    name, soft, hard = @worker.calls.first
    assert_equal [:job_deadline, left, 2.0], [name, soft, (hard - soft).round(6)]
  end

  def test_extending_takes_a_positive_number
    [0, -1, nil, "5", Float::NAN, Float::INFINITY, 1i].each do |seconds|
      assert_raises(ArgumentError, seconds.inspect) { @timeout.extend_by(seconds) }
    end
    assert_empty @worker.calls
  end

  def test_disabling
    @timeout.disable!

    assert_equal [[:job_deadline, nil, nil]], @worker.calls
    assert_nil @timeout.remaining
    assert_nil @timeout.extend_by(5)
    assert_equal 1, @worker.calls.size
  end

  def test_without_a_deadline
    timeout = Pando::HTTP::Timeout.new(@worker, nil, 2.0)

    assert_nil timeout.remaining
    assert_nil timeout.extend_by(5)
    assert_empty @worker.calls
  end

  def test_when_the_answer_is_sent_it_begins_anew_and_can_be_moved
    @timeout.begin_anew

    assert_equal [[:job_deadline, 10.0, 12.0]], @worker.calls
    assert_in_delta 10.0, @timeout.remaining, 1
    assert_in_delta 15.0, @timeout.extend_by(5), 1
  end

  def test_after_a_streamed_body_it_begins_anew
    timeout = Pando::HTTP::Timeout.new(@worker, 10.0, 2.0, streaming: 600.0)
    timeout.answering
    timeout.begin_anew

    assert_equal [[:job_streams], [:job_deadline, 600.0, 602.0], [:job_deadline, 10.0, 12.0]], @worker.calls
  end

  def test_what_runs_after_the_answer_without_a_deadline_does_not_keep_a_leaving_worker
    2.times { Pando::HTTP::Timeout.new(@worker, nil, 2.0).begin_anew }
    @timeout.disable!
    @timeout.begin_anew

    assert_equal [[:job_streams], [:job_streams], [:job_deadline, nil, nil], [:job_streams]], @worker.calls
    assert_nil @timeout.remaining
  end

  def test_the_deadline_of_a_streamed_body_ends_with_it
    timeout = Pando::HTTP::Timeout.new(@worker, nil, 2.0, streaming: 600.0)
    timeout.answering
    timeout.begin_anew

    assert_equal [:job_deadline, nil, nil], @worker.calls.last
    assert_includes @worker.calls, [:job_streams]
  end

  def test_a_kill_that_follows_a_timeout_is_not_moved
    assert_raises(Pando::RequestTimeout) { @timeout.fire }
    @timeout.begin_anew

    assert_empty @worker.calls
  end

  def test_kept_beyond_its_request_it_does_nothing
    @timeout.finish
    @timeout.extend_by(5)
    @timeout.disable!
    @timeout.fire

    assert_nil @timeout.remaining
    assert_empty @worker.calls
    refute_predicate @timeout, :fired?
  end

  def test_suspended_the_worker_must_come_back_some_time
    timeout = Pando::HTTP::Timeout.new(@worker, 10.0, 2.0, patience: 30.0)
    timeout.suspend { nil }

    assert_equal [:job_deadline, nil, 32.0], @worker.calls.first
  end

  def test_without_a_deadline_there_is_nothing_to_suspend
    @timeout.finish

    assert_equal(:result, @timeout.suspend { :result })
    assert_empty @worker.calls
  end

  def test_the_head_of_the_answer_ends_it_once
    2.times { @timeout.answering }

    assert_equal [[:job_streams], [:job_deadline, nil, nil]], @worker.calls
    assert_nil @timeout.remaining
    assert_equal(:result, @timeout.suspend { :result })
    assert_nil @timeout.extend_by(5)
  end

  def test_a_stream_with_a_time_of_its_own
    timeout = Pando::HTTP::Timeout.new(@worker, 10.0, 2.0, streaming: 60.0)
    timeout.answering

    assert_equal [:job_deadline, 60.0, 62.0], @worker.calls.last
    assert_in_delta 60.0, timeout.remaining, 1
    assert_in_delta 65.0, timeout.extend_by(5), 1
  end

  def test_a_stream_may_have_a_time_where_a_request_has_none
    timeout = Pando::HTTP::Timeout.new(@worker, nil, 2.0, streaming: 60.0)
    timeout.answering

    assert_equal [:job_deadline, 60.0, 62.0], @worker.calls.last
  end

  def test_a_disabled_one_stays_so_behind_the_head
    timeout = Pando::HTTP::Timeout.new(@worker, 10.0, 2.0, streaming: 60.0)
    timeout.disable!
    timeout.answering

    assert_equal [[:job_deadline, nil, nil], [:job_streams]], @worker.calls
  end

  def test_a_late_answer_is_refused_unless_the_application_stands_by_it
    refute_predicate @timeout, :handled!
    @timeout.check
    assert_raises(Pando::RequestTimeout) { @timeout.fire(["here:1"]) }
    error = assert_raises(Pando::RequestTimeout) { @timeout.check }

    assert_equal ["here:1"], error.backtrace
    assert_predicate @timeout, :exceeded?
    assert @timeout.handled!
    refute_predicate @timeout, :exceeded?
    @timeout.check
  end

  def test_it_fires_once
    assert_raises(Pando::RequestTimeout) { @timeout.fire }
    @timeout.fire

    assert_predicate @timeout, :fired?
  end
end

# A request that outlives its soft timeout: served in the main thread, as in a
# worker, with the signal that the monitor would send.
class HTTPSoftTimeoutTest < Minitest::Test
  include HTTPSupport::Events

  def setup
    @handler = trap("URG", "DEFAULT")
    @running = Queue.new
    @answers = Queue.new
  end

  def teardown
    trap("URG", @handler || "DEFAULT")
    @served&.stop
  end

  # Serves requests until the client's block is done; the block runs in a thread.
  def serve(app, **settings, &client)
    @served = HTTPSupport::ServedWork.new(app, **settings)
    events_of do
      thread = Thread.new do
        client.call
      ensure
        @served.end_loop
      end
      @served.serve
      thread.value
    end
  end

  def get = @answers << @served.get("/slow?secret")

  # What the monitor does when a soft deadline has passed.
  def signal
    @served.worker.deadline_passed = true
    Process.kill("URG", Process.pid)
  end

  # Sleeps until it is interrupted; tells the other side that it is there.
  def linger
    @running << true
    sleep 30
  end

  def names(events) = events.map(&:name)

  def test_the_client_gets_504_the_log_a_backtrace_the_worker_a_successor
    app = lambda do |_|
      linger
    rescue StandardError
      flunk
    end
    events = serve(app) do
      thread = Thread.new { get }
      @running.pop
      signal
      thread.join
    end

    assert_equal([504, "504 Gateway Timeout\n"], @answers.pop.then { |answer| [answer.status, answer.body] })
    event = events.first
    assert_equal [["request.timed_out"], "GET", "/slow", 1, 2],
                 [names(events), *%i[method path slot generation].map { |key| event[key] }]
    assert_includes event[:error].backtrace.first, "sleep"
    assert_includes event[:error].backtrace[1], "linger"
    assert_equal [%i[run_hook after_worker_timeout], [:leave, "timeout"], [:job_finished]],
                 @served.worker.calls.last(3)
  end

  def test_it_is_no_standard_error_but_ensure_runs
    ensured = false
    app = lambda do |_|
      linger
    ensure
      ensured = true
    end
    serve(app) do
      thread = Thread.new { get }
      @running.pop
      signal
      thread.join
    end

    assert ensured
  end

  def test_after_the_first_byte_the_connection_is_cut
    body = Enumerator.new { |out| (out << "one") && linger }
    serve(->(_) { [200, {}, body] }, timeout_streaming: 30.0) do
      thread = Thread.new { assert_raises(Errno::ECONNRESET) { get } }
      @running.pop
      signal
      thread.value
    end

    assert_equal [[:leave, "timeout"]], @served.worker.called(:leave)
  end

  def test_an_early_signal_changes_nothing
    app = lambda do |_|
      Process.kill("URG", Process.pid)
      1000.times { Thread.pass }
      [200, {}, ["fine"]]
    end
    events = serve(app) { get }

    assert_equal "fine", @answers.pop.body
    assert_empty events
    assert_empty @served.worker.called(:leave)
  end

  def test_a_late_signal_changes_nothing
    serve(->(_) { [200, {}, ["fine"]] }) do
      get
      wait_until { @served.worker.called(:job_finished).any? }
      signal
      @served.worker.deadline_passed = false
      get
    end

    assert_equal %w[fine fine], Array.new(2) { @answers.pop.body }
  end

  def test_an_application_that_masks_it_is_interrupted_when_it_allows_it
    steps = []
    app = lambda do |_|
      Thread.handle_interrupt(Pando::RequestTimeout => :never) do
        signal
        1000.times { Thread.pass }
        steps << :masked
      end
      steps << :never_reached
    end
    events = serve(app) { get }

    assert_equal [:masked], steps
    assert_equal 504, @answers.pop.status
    assert_equal ["request.timed_out"], names(events)
  end

  def test_it_is_raised_once
    rescued = 0
    app = lambda do |_|
      begin
        signal
        1000.times { Thread.pass }
      rescue Pando::RequestTimeout
        rescued += 1
      end
      signal
      1000.times { Thread.pass }
      [200, {}, ["late"]]
    end
    events = serve(app) { get }

    assert_equal 1, rescued
    assert_equal 504, @answers.pop.status
    assert_equal ["request.timed_out"], names(events)
    assert_equal [[:leave, "timeout"]], @served.worker.called(:leave)
  end

  def test_an_application_that_turns_it_into_another_error
    app = lambda do |_|
      signal
      1000.times { Thread.pass }
    rescue Exception # rubocop:disable Lint/RescueException
      raise "something else"
    end
    events = serve(app) { get }

    assert_equal 504, @answers.pop.status
    assert_equal %w[request.timed_out], names(events)
    assert_equal "the request outlived its timeout; it became RuntimeError: something else",
                 events.first[:error].message
    assert_includes events.first[:location], __FILE__
    assert_equal [[:leave, "timeout"]], @served.worker.called(:leave)
  end

  # @yieldparam rescued [Pando::RequestTimeout]
  # @return [Proc] an app that rescues every exception, and answers with what the block makes of its timeout
  def rescuer
    lambda do |env|
      signal
      1000.times { Thread.pass }
      [200, {}, ["in time"]]
    rescue Exception => e # rubocop:disable Lint/RescueException
      yield e, env
    end
  end

  # What each body is answered with, and whether it was closed.
  def test_whatever_the_application_answers_instead_of_its_timeout_the_client_gets_504
    bodies = [["500"], Enumerator.new { |out| out << "each" }, ->(stream) { stream.write("call") }, []]
    closed = 0
    bodies.each { |body| body.define_singleton_method(:close) { closed += 1 } }
    fields = [{}, {}, {}, { "rack.hijack" => :close.to_proc }]
    app = rescuer { [500, fields.shift, bodies.shift] }
    events = serve(app) { 4.times { get } }

    assert_equal [504] * 4, Array.new(4) { @answers.pop.status }
    assert_equal [["request.timed_out"] * 4, 4], [names(events), closed]
    assert_equal ["the request outlived its timeout; the response that the application or its framework made of it " \
                  "was not sent"], events.map { |event| event[:error].message }.uniq
  end

  def test_head_gets_the_head_of_a_504
    serve(rescuer { [500, {}, ["text"]] }) { @answers << @served.get("/slow", verb: "HEAD") }

    answer = @answers.pop
    assert_equal [504, ""], [answer.status, answer.body]
  end

  def test_what_has_hung_on_the_request_is_told_of_the_504
    told = nil
    app = rescuer do |_, env|
      env["rack.response_finished"] << ->(_env, *arguments) { told = arguments }
      [500, { "x" => "y" }, []]
    end
    serve(app) { get }

    assert_equal [504, nil, Pando::RequestTimeout], [told[0], told[1], told[2].class]
  end

  def test_the_event_of_a_swallowed_timeout_knows_where_it_was
    line = nil
    app = rescuer do |e|
      line = e.backtrace.first
      [500, {}, []]
    end
    event = serve(app) { get }.first

    assert_equal [line, "GET", "/slow"], [event[:error].backtrace.first, event[:method], event[:path]]
    assert_match(/\A#{Regexp.escape(__FILE__)}:\d+/, event[:location])
  end

  def test_an_answer_that_the_application_stands_by_is_sent_and_its_worker_replaced
    events = serve(rescuer { |_, env| [200, {}, ["partial #{env["pando.timeout"].handled!}"]] }) { get }

    assert_equal "partial true", @answers.pop.body
    assert_equal ["request.timed_out"], names(events)
    assert_equal [[:leave, "timeout"]], @served.worker.called(:leave)
  end

  def test_a_body_that_rescues_its_timeout_before_its_first_piece
    linger = method(:linger)
    body = Enumerator.new do |out|
      linger.call
    rescue Exception # rubocop:disable Lint/RescueException
      out << "sorry"
    end
    serve(->(_) { [200, {}, body] }) do
      thread = Thread.new { get }
      @running.pop
      signal
      thread.join
    end

    assert_equal 504, @answers.pop.status
  end

  # After each kind of head the deadline is none, or another one.
  def test_the_head_ends_the_deadline
    kinds = { "/each" => ->(_) { [200, {}, Enumerator.new { |out| out << "each" }] },
              "/call" => ->(_) { [200, {}, ->(stream) { stream.write("call") }] },
              "/hijack" => ->(_) { [200, { "rack.hijack" => :close.to_proc }, []] },
              "/full" => ->(env) { env["rack.hijack"].call.close || [200, {}, []] },
              "/file" => ->(_) { [200, {}, File.open(__FILE__)] } }
    serve(->(env) { kinds.fetch(env["PATH_INFO"]).call(env) }) { kinds.each_key { |path| @served.get(path) } }

    deadlines = [[:job_deadline, 20.0, 22.0], [:job_streams], [:job_deadline, nil, nil]]
    calls = @served.worker.calls.select { |name,| %i[job_deadline job_streams].include?(name) }
    assert_equal deadlines * 5, calls
  end

  def test_an_array_is_no_stream
    serve(->(_) { [200, {}, %w[a b]] }) { get }

    assert_empty @served.worker.called(:job_streams)
  end

  def test_the_body_is_closed
    closed = false
    body = Object.new
    linger = method(:linger)
    body.define_singleton_method(:each) { |&_| linger.call }
    body.define_singleton_method(:close) { closed = true }
    serve(->(_) { [200, {}, body] }) do
      thread = Thread.new { get }
      @running.pop
      signal
      thread.join
    end

    assert closed
    assert_equal 504, @answers.pop.status
  end

  def test_a_hook_that_raises_does_not_keep_the_worker
    handler = ->(error) { raise Pando::HookError, error.class.name }
    client = nil
    app = lambda do |_|
      @served.worker.hooks[:after_worker_timeout] = handler
      signal
      sleep 30
    end
    error = assert_raises(Pando::HookError) do
      serve(app) { client = Thread.current.tap { get } }
    end
    client&.join

    assert_equal "Pando::RequestTimeout", error.message
    assert_equal 504, @answers.pop.status
    assert_equal [[:leave, "timeout"], [:job_finished]], @served.worker.calls.last(2)
  end

  def test_a_client_that_takes_the_answer_slowly_is_not_the_applications_fault
    text = "x" * 20_000_000
    events = serve(->(_) { [200, {}, [text]] }) do
      socket = @served.connect
      socket.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
      wait_until { @served.worker.called(:job_deadline).last == [:job_deadline, nil, 7.0] }
      signal
      @answers << HTTPSupport::Answer.new(socket.read)
    ensure
      socket&.close
    end

    assert_equal text.bytesize, @answers.pop.body.bytesize
    assert_empty events
    assert_empty @served.worker.called(:leave)
  end

  def test_the_application_may_ask_for_more_time
    app = lambda do |env|
      timeout = env["pando.timeout"]
      timeout.extend_by(30)
      [200, {}, [timeout.remaining.round.to_s]]
    end
    serve(app) { get }

    assert_equal "50", @answers.pop.body
    assert_equal 2, @served.worker.called(:job_deadline).size
  end
end
