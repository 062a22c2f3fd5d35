# frozen_string_literal: true

require "test_helper"
require "support/admin_client"
require "support/server_process"

# Promise: a request that outlives its soft timeout is unwound and answered with 504, and its worker is replaced.
class SoftTimeoutTest < Minitest::Test
  parallelize_me! # they wait most of the time

  APP = <<~'RUBY'
    def answer(text = "in time", status = 200) = [status, {}, [text]]

    # A body that stalls before its first part.
    STALLING = Object.new
    def STALLING.each
      sleep
      yield "first part"
    end

    run lambda { |env|
      deadline = env["pando.timeout"]
      case env["PATH_INFO"]
      when "/hang"
        begin
          sleep
        ensure
          File.write("unwound", Process.pid)
        end
      when "/rescue"
        begin
          sleep
        rescue => e
          answer("swallowed #{e.class}")
        end
      when "/rescue_all"
        begin
          sleep
        rescue Exception => e
          answer("lost #{e.class}", 500)
        end
      when "/handled"
        begin
          sleep
        rescue Pando::RequestTimeout => e
          deadline.handled!
          answer("kept #{e.class}")
        end
      when "/critical"
        Thread.handle_interrupt(Pando::RequestTimeout => :never) do
          sleep 0.05 until deadline.remaining < -0.3
          File.write("critical", "complete")
        end
        answer("never reached")
      when "/extend"
        left = deadline.extend_by(20)
        sleep 1.2
        answer("#{left > 20} #{deadline.remaining < left}")
      when "/disable"
        deadline.disable!
        sleep 1.2
        answer(deadline.remaining.inspect)
      when "/stall" then [200, {}, STALLING]
      else answer
      end
    }
  RUBY
  CONFIG = <<~RUBY
    workers 1
    timeout 0.8, grace: 20
    refork :manual
    after_worker_timeout do |server, worker, error|
      File.write("hook", [server.class, Process.pid, worker.slot, worker.generation, error.class].join(" "))
    end
  RUBY

  def setup
    port = free_port
    @server = Support::ServerProcess.start(app: APP, config: "#{CONFIG}admin \"127.0.0.1:#{port}\"\n")
    @admin = Support::AdminClient.new(@server, port)
    @worker = @server.workers.first.pid
  end

  def teardown
    @server.kill
  end

  def test_answers_504_unwinds_and_replaces_the_worker
    response = nil
    event = @server.wait_for("request.timed_out") { response = @server.get("/hang?secret=1") }

    assert_equal(504, response.status)
    assert_equal(@worker, Integer(File.read(file("unwound"))))
    assert_equal(["GET", "/hang", @worker, 0], event.values_at("method", "path", "pid", "slot"))
    assert_operator(event["seconds"], :>=, 0.8)
    assert_equal("Pando::RequestTimeout", event["error"]["class"])
    assert(event["error"]["backtrace"].grep(/config\.ru:\d+:in .*sleep/).any?, event["error"]["backtrace"])
    assert_replaced
    assert_equal("in time", @server.get("/").body)
    refute_includes(@server.output, "secret")
  end

  def test_is_counted
    assert_equal([0, 0], timed_out)
    @server.get("/hang")
    assert_replaced
    @server.get("/hang") # of another worker

    wait_until(message: -> { timed_out.inspect }) { timed_out == [2, 0] } # the figures may be a moment old
  end

  def test_tells_the_hook_in_the_worker
    @server.get("/hang")
    assert_replaced

    assert_equal("Pando::Server #{@worker} 0 0 Pando::RequestTimeout", File.read(file("hook")))
  end

  def test_rescue_of_standard_errors_does_not_swallow_it
    assert_equal(504, @server.get("/rescue").status)
    assert_replaced
  end

  def test_an_application_that_rescues_every_exception_is_answered_for
    response = nil
    event = @server.wait_for("request.timed_out") { response = @server.get("/rescue_all") }

    assert_equal([504, "504 Gateway Timeout\n"], [response.status, response.body])
    assert_equal("/rescue_all", event["path"])
    assert_match(/config\.ru:\d+:in .*sleep/, event["error"]["backtrace"].first)
    assert_match(/config\.ru:\d+/, event["location"])
    assert_replaced
  end

  def test_an_application_that_stands_by_its_answer_keeps_it_but_not_its_worker
    response = nil
    event = @server.wait_for("request.timed_out") { response = @server.get("/handled") }

    assert_equal([200, "kept Pando::RequestTimeout"], [response.status, response.body])
    assert_equal("/handled", event["path"])
    assert_replaced
  end

  def test_handle_interrupt_defers_it_to_the_end_of_a_critical_section
    assert_equal(504, @server.get("/critical").status)
    assert_equal("complete", File.read(file("critical")))
    assert_replaced
  end

  def test_the_application_can_extend_its_deadline_for_this_request_only
    assert_equal("true true", @server.get("/extend").body)
    assert_equal("in time", @server.get("/").body)
    assert_equal([@worker], @server.workers.map(&:pid))
    assert_equal(504, @server.get("/hang").status)
  end

  def test_the_application_can_disable_its_deadline_for_this_request_only
    assert_equal("nil", @server.get("/disable").body)
    assert_equal([@worker], @server.workers.map(&:pid))
    assert_equal(504, @server.get("/hang").status)
  end

  def test_a_body_that_has_not_begun_is_the_request
    assert_equal(504, @server.get("/stall").status)
    assert_replaced
  end

  private

  def file(name) = File.join(@server.folder, name)

  # @return [Array(Float, Float)] the counts of soft and hard timeouts
  def timed_out
    %w[soft hard].map { |kind| @admin.metric("pando_requests_timed_out_total{pool=\"web\",kind=\"#{kind}\"}") }
  end

  def assert_replaced
    assert_equal("timeout", @server.wait_past("worker.leaving", pid: @worker)["reason"])
    @server.wait_past("worker.exited", pid: @worker)
    ready = wait_until(message: "a new worker") { @server.events("worker.ready")[1] }
    assert_equal([0, 0], ready.values_at("slot", "generation"))
    refute_equal(@worker, ready["pid"])
  end
end
