# frozen_string_literal: true

require "test_helper"
require "support/servers"
require_relative "../../bench/support/bundle"

# Promise: work that a Rails app has queued inside a worker is done before the worker leaves, and never twice; what
# stop_timeout leaves no time for is counted and named.
class QueuedWorkTest < Minitest::Test
  include Support::Servers

  FIXTURE = File.expand_path("../fixtures/apps/queued", __dir__)
  MAILS = 1000
  REFORKS = 10
  RELOADS = 2
  CLIENTS = 3

  def setup
    @bundle = Bench::Bundle.new("queued", File.join(FIXTURE, "Gemfile")).prepare
  end

  def start(config)
    @server = Support::ServerProcess.new(
      arguments: [File.join(FIXTURE, "config.ru")], config: "environment \"production\"\n#{config}",
      env: @bundle.environment.merge("APP_DONE" => "done", "RAILS_ENV" => "production")
    )
    servers << @server
    @server.wait_until_current
    @done = File.join(@server.folder, "done")
  end

  # @return [Array<String>] what has been done, in that order
  def done = File.exist?(@done) ? File.readlines(@done, chomp: true) : []

  def ask(path)
    answer = @server.get(path)
    assert_equal(200, answer.status, answer.body)
    answer.body.to_i
  end

  # The folder goes with the server.
  # @return [Array<String>]
  def stop_and_read
    File.open(@done, File::RDWR | File::CREAT) do |kept|
      assert_predicate(@server.stop, :success?)
      kept.each_line(chomp: true).to_a
    end
  end

  def reload
    @server.wait_for_leavers
    @server.wait_for("reload.finished") { @server.signal("HUP") }
  end

  # While the block runs.
  def deliver(ids)
    queue = Queue.new.tap { |all| ids.each { |id| all << id } }.close
    clients = Array.new(CLIENTS) do
      Thread.new do
        while (id = queue.pop)
          ask("/mail/#{id}")
        end
      end
    end
    yield
    clients.each(&:join)
  end

  def test_a_thousand_mails_over_ten_reforks_and_two_reloads_arrive_once_each
    start("workers 2\nrefork :manual")
    ids = (1..MAILS).map(&:to_s)
    steps = Array.new(REFORKS) { @server.method(:refork) }.insert(3, method(:reload)).insert(8, method(:reload))
    ids.each_slice((MAILS / steps.size.to_f).ceil).zip(steps) { |slice, step| deliver(slice) { step.call } }

    assert_equal(REFORKS, @server.events("refork.finished").size)
    assert_equal(RELOADS, @server.events("reload.finished").size)
    assert_equal(ids.sort, stop_and_read.sort)
    assert_empty(@server.events("work.dropped"))
  end

  def test_the_jobs_of_sucker_punch_are_done
    start("workers 1\nrefork :manual")
    ids = (1..20).map(&:to_s)
    ids.each { |id| ask("/punch/#{id}") }

    assert_equal(ids.sort, stop_and_read.sort)
  end

  def test_what_takes_longer_than_the_stop_is_named
    start("workers 1\nrefork :manual\nstop_timeout 3")
    ask("/long/never")
    wait_until(message: "a job that runs") { done == ["begun"] }
    ask("/later/1")

    assert_equal(["begun"], stop_and_read)
    event = @server.events("work.dropped").first
    assert_equal(["warn", "concurrent-ruby", 2], event.values_at("level", "library", "count"))
    assert_match(%r{/app/jobs/long_job\.rb:\d+.* \(running\)}, event["names"].first)
    assert_equal("LineJob (scheduled)", event["names"].last)
    assert_empty(@server.events("worker.killed"))
  end

  def test_what_waits_is_named_by_its_class
    start("workers 1\nrefork :manual\nstop_timeout 3")
    # As many as have threads, and more.
    40.times { ask("/long/never") }
    2.times { ask("/mail/1") }
    stop_and_read

    names = @server.events("work.dropped").first["names"].join("\n")
    assert_match(/^2 NoticeMailer#notice$/, names)
    assert_match(/^\d+ LongJob$/, names)
  end

  # The parent does it; the child has a copy, which is nobody's.
  def test_a_job_that_runs_while_its_worker_is_forked_is_done_once
    start("workers 1\nrefork :manual")
    ask("/long/go")
    wait_until(message: "a job that runs") { done == ["begun"] }
    ids = (1..20).map(&:to_s)
    ids.each { |id| ask("/job/#{id}") }
    @server.refork
    ask("/job/21")
    @server.write("go", "")

    assert_equal(["begun", *ids, "21", "ended"].sort, stop_and_read.sort)
    assert_empty(@server.events("work.dropped"))
  end

  def test_a_timeout_that_rails_has_made_a_500_of_is_a_504_with_the_line_of_the_controller
    start("workers 1\nrefork :manual\ntimeout 1, grace: 20")
    answer = nil
    event = @server.wait_for("request.timed_out") { answer = @server.get("/hang/1") }

    assert_equal([504, "504 Gateway Timeout\n"], [answer.status, answer.body])
    assert_match(%r{/app/controllers/things_controller\.rb:30:in }, event["location"])
    assert_includes(event["error"]["backtrace"], event["location"])
    assert_match(/sleep/, event["error"]["backtrace"].first)
  end
end
