# frozen_string_literal: true

require "test_helper"
require "support/server_process"
require "support/waiting"

# Requests that end their worker, or leave one too many: the mold is not to blame.
class DeadlyRequestsTest < Minitest::Test
  include Support::Waiting

  APP = <<~RUBY
    run(lambda do |env|
      case env["PATH_INFO"]
      when "/exit" then exit!(4)
      when "/abort" then Process.kill(:ABRT, Process.pid) && sleep
      when "/fork" then fork
      when "/string" then next [200, {}, "no body"]
      when "/inspect" then next [200, {}, [env.inspect]]
      end
      [200, {}, [Process.pid.to_s]]
    end)
  RUBY

  # The parent's response is sent once, and the child's part in none. A library in C may call fork(2).
  FORKING_APP = <<~RUBY
    require "fiddle"
    FORK = Fiddle::Function.new(Fiddle::Handle::DEFAULT["fork"], [], Fiddle::TYPE_INT, need_gvl: true)
    Body = Struct.new(:ending, :parts) do
      def each(&) = parts.call(&)
      def close = ending&.call
    end
    pid = -> { "by " + Process.pid.to_s }
    talk = ->(stream) { stream.write(pid.()); fork; stream.write(" ok"); stream.close }
    run(lambda do |env|
      case env["PATH_INFO"]
      when "/library" then FORK.call
      when "/library_each"
        next [200, {}, Body.new(nil, ->(&part) { part.(pid.() + " ok"); FORK.call })]
      when "/each"
        next [200, {}, Body.new(nil, ->(&part) { part.(pid.()); fork; part.(" ok") })]
      when "/each_last"
        next [200, {}, Body.new(nil, ->(&part) { part.(pid.()); part.(" ok"); fork })]
      when "/each_raise"
        next [200, {}, Body.new(nil, ->(&part) { part.(pid.()); fork || raise; part.(" ok") })]
      when "/close"
        next [200, {}, Body.new(-> { fork }, ->(&part) { part.(pid.()); part.(" ok") })]
      when "/call" then next [200, {}, talk]
      when "/before"
        fork
        note = -> { File.write("bodies", Process.pid.to_s + " ", mode: "a") }
        next [200, {}, Body.new(nil, ->(&part) { note.(); part.(pid.() + " ok") })]
      when "/hijack" then next [200, { "rack.hijack" => talk }, []]
      when "/finished"
        env["rack.response_finished"].push(->(*) { File.write("done", "once ", mode: "a") }, ->(*) { fork })
      end
      [200, {}, [pid.() + " ok"]]
    end)
  RUBY
  FORKS = %w[/before /library /library_each /each /each_last /each_raise /close /call /hijack /finished].freeze

  def setup
    @server = Support::ServerProcess.start(app: APP, config: "workers 1\nrefork :manual")
  end

  def teardown
    @server.kill
  end

  def get(path) = @server.get(path)

  def serve_forks(config) = Support::ServerProcess.start(app: FORKING_APP, config: "#{config}\nrefork :manual")

  # Without the lines of the chunked coding.
  def whole(response) = response.body.gsub(/^\h*\r\n|\r\n/, "")

  def check_forks(server, paths)
    worker = server.workers.first.pid
    paths.each do |path|
      event = server.wait_for("orphan.exited") { assert_equal "by #{worker} ok", whole(server.get(path)), path }

      assert_equal worker, event["parent"], path
      assert_equal "by #{worker} ok", whole(server.get("/")), path
    end
    assert_equal [worker], server.workers.map(&:pid)
    assert_equal(["orphan.exited"] * paths.size, server.complaints.map { |complaint| complaint["event"] })
    done = File.join(server.folder, "done")
    wait_until { File.size?(done) } # a thread may still be at this callback, which comes after the one that forks
    assert_equal "once ", File.read(done)
    assert_equal "#{worker} ", File.read(File.join(server.folder, "bodies"))
    assert_predicate server.stop, :success?
  end

  def test_workers_that_die_of_their_requests_are_replaced_at_once_and_for_ever
    12.times do
      assert_equal 502, get("/exit").status
      assert_equal 200, get("/").status
    end
    3.times { assert_equal 502, get("/abort").status }

    assert_equal 200, get("/").status
    assert_empty @server.events("generation.discarded")
    assert_equal(["GET /exit"], @server.events("worker.lost").first(12).map { |event| event["request"] }.uniq)
  end

  def test_a_child_that_comes_back_from_a_request_does_not_serve
    worker = @server.workers.first.pid.to_s
    event = @server.wait_for("orphan.exited") { assert_equal worker, get("/fork").body }

    assert_equal worker.to_i, event["parent"]
    assert_equal([worker], Array.new(10) { get("/").body }.uniq)
    assert_equal [worker.to_i], @server.workers.map(&:pid)
    assert_predicate @server.stop, :success?
  end

  def test_a_child_that_comes_back_from_a_body_does_not_serve
    server = serve_forks("workers 1")
    check_forks(server, FORKS)
  ensure
    server&.kill
  end

  def test_a_child_that_comes_back_to_a_thread_does_not_serve
    server = serve_forks("workers 1\nthreads 2")
    check_forks(server, FORKS)
  ensure
    server&.kill
  end

  def test_a_child_that_comes_back_in_direct_mode_does_not_serve
    server = serve_forks("workers 1\nreactor false")
    check_forks(server, FORKS)
  ensure
    server&.kill
  end

  def test_a_body_that_is_none_is_an_error_before_anything_is_sent
    assert_equal 500, get("/string").status
    assert_match(/neither each nor call/, @server.wait_past("request.failed")["error"].to_s)
  end

  def test_the_environment_can_be_shown
    assert_operator get("/inspect").body.bytesize, :<, 2000
  end
end
