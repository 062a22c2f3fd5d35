# frozen_string_literal: true

require "test_helper"
require "support/servers"

# Promise: the timeout of a request ends when the head of its answer is out. A stream or a hijacked connection
# takes as long as the application likes, unless `timeout streaming:` says otherwise.
class StreamingTimeoutTest < Minitest::Test
  include Support::Servers

  parallelize_me! # they wait most of the time

  APP = <<~'RUBY'
    # More than three times the timeout, in small steps.
    STEPS = 14
    STEP = 0.2

    def Object.steps
      STEPS.times { |number| sleep(STEP) && yield("#{number} ") }
    end

    each = Object.new
    def each.each(&block)
      yield "first "
      Object.steps(&block)
    end

    run lambda { |env|
      case env["PATH_INFO"]
      when "/each" then [200, {}, each]
      when "/call" then [200, {}, ->(stream) { Object.steps { |text| stream.write(text) } }]
      when "/partial" then [200, { "rack.hijack" => ->(stream) { Object.steps { |text| stream.write(text) } && stream.close } }, []]
      when "/full"
        socket = env["rack.hijack"].call
        socket.write("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n")
        Object.steps { |text| socket.write(text) }
        socket.close
      when "/endless" then [200, {}, ->(stream) { loop { stream.write("on ") && sleep(STEP) } }]
      when "/stuck" then [200, {}, ->(stream) { stream.write("on ") && Thread.handle_interrupt(Object => :never) { sleep } }]
      else [200, {}, ["pid #{Process.pid}"]]
      end
    }
  RUBY
  WHOLE = /(?:first )?#{Array.new(14) { |number| "#{number} " }.join}/

  # A server of a test for each way of an answer, all at once.
  def start(timeout, workers: 4, more: "")
    @server = serve(app: APP, config: "workers #{workers}\nrefork :manual\n#{timeout}\n#{more}")
  end

  # By HTTP/1.0 a body is not chunked.
  def text_of(path, version: "1.0")
    socket = @server.connect
    socket.write("GET #{path} HTTP/#{version}\r\nHost: localhost\r\nConnection: close\r\n\r\n")
    text = +""
    loop { text << socket.readpartial(4096) }
  rescue EOFError, Errno::ECONNRESET
    text
  ensure
    socket&.close
  end

  def test_what_has_begun_in_time_is_sent_to_its_end
    start("timeout 0.8, grace: 0.2")
    before = @server.workers.map(&:pid).sort
    readers = %w[/each /call /partial /full].to_h { |path| [path, Thread.new { text_of(path) }] }
    texts = readers.transform_values(&:value)

    texts.each { |path, text| assert_match(/\AHTTP\S+ 200 .*\r\n\r\n#{WHOLE}\z/mo, text, path) }
    assert_empty(@server.events.map { |event| event["event"] } & %w[request.timed_out request.killed worker.leaving])
    assert_equal(before, @server.workers.map(&:pid).sort)
  end

  def test_without_a_reactor
    start("timeout 0.8, grace: 0.2", workers: 2, more: "reactor false")
    texts = %w[/call /full].map { |path| Thread.new { text_of(path) } }.map(&:value)

    texts.each { |text| assert_match(/#{WHOLE}\z/o, text) }
  end

  def test_with_a_time_of_its_own_a_stream_is_cut_off
    start("timeout 20, grace: 20, streaming: 0.8")
    text = nil
    event = @server.wait_for("request.timed_out") { text = text_of("/endless", version: "1.1") }

    assert_match(/\AHTTP\S+ 200 .*on /m, text)
    refute(text.end_with?("\r\n0\r\n\r\n"), "the client must see that it is incomplete")
    assert_equal("/endless", event["path"])
    assert_operator(event["seconds"], :>=, 0.8)
  end

  def test_a_stream_that_does_not_yield_to_its_time_is_killed
    start("timeout 20, grace: 0.4, streaming: 0.4", workers: 2)
    event = @server.wait_for("request.killed") { text_of("/stuck") }

    assert_equal("GET /stuck", event["request"])
  end

  # It would never end.
  def test_a_rollout_waits_for_a_stream_for_as_long_as_a_stop_does
    start("timeout 20", workers: 2, more: "stop_timeout 1.5")
    client = Thread.new { text_of("/endless") }
    @server.wait_until_busy(1)
    streaming = @server.workers.find { |worker| worker.title.end_with?("busy") }.pid
    @server.refork
    event = @server.wait_past("worker.killed", pid: streaming)

    assert_includes(event["reason"], "did not leave in time")
    assert_includes(client.value, "on ")
  end
end
