# frozen_string_literal: true

require "test_helper"
require "pando/http/timeout"
require_relative "support/served_work"

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
