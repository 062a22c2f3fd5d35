# frozen_string_literal: true

require "test_helper"
require "json"
require "open3"
require "support/servers"
require_relative "../../../bench/support/bundle"

# What is found of the real concurrent-ruby's queues and timer tasks. Each script is a Ruby of its own.
class ConcurrentRubyTest < Minitest::Test
  include Support::Servers

  LIBRARIES = %w[activejob concurrent-ruby sucker_punch].freeze
  GEMFILE = File.expand_path("../../fixtures/apps/queued/Gemfile", __dir__)
  BEGINNING = <<~RUBY
    require "concurrent-ruby"
    require "json"
    require "pando/fork_safety/queued_work"
    Executors = Pando::ForkSafety::Libraries::ConcurrentExecutors
    GATE = Queue.new
    POOL = Concurrent::ThreadPoolExecutor.new(min_threads: 1, max_threads: 2, max_queue: 0)
    def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    def block = GATE.pop
    def wait_until = (sleep(0.01) until yield)
    def in_child
      reader, writer = IO.pipe
      fork { writer.write(JSON.generate(yield)) && exit!(0) }
      writer.close
      JSON.parse(reader.read)
    ensure
      Process.wait
    end
    told = []
  RUBY

  # How many findings there are in a line.
  LINES = <<~'RUBY'
    require "pando/fork_safety/audit"
    def lines
      found = Pando::ForkSafety::Audit.threads.findings.map(&:location).tally
      found.map { |location, count| location == "-e:#{LINE}" ? count : location }
    end
  RUBY
  # Starts a task whose block is in this line of a file, and tells which are found.
  TASKS = <<~'RUBY'
    require "pando/fork_safety/audit"
    def start(line, work, seconds: 0.01, **options)
      eval("Concurrent::TimerTask.execute(execution_interval: seconds, **options) { #{work} }", binding, "tasks", line)
    end
    def found = Pando::ForkSafety::Audit::TimerTask.all.map(&:key).sort
  RUBY
  # A worker starts a task with this request, and so does its child, the canary.
  WATCH = <<~'RUBY'
    require "pando"
    require "pando/server/thread_watch"
    Config = Struct.new(:fork_safety_threads, :rollout_canary)
    Role = Struct.new(:requests, :told) do
      def role = :worker
      def payload = self
      def report_thread(_role, kind, _text) = told << (kind == :thread_tried ? kind : "#{kind} #{requests}")
    end
    def serve(watch, from, count)
      worker = Role.new(0, [])
      watch.after_fork(worker)
      watch.born(worker)
      count.times do
        worker.requests += 1
        Concurrent::TimerTask.execute(execution_interval: 60) { nil } if worker.requests == from
        watch.tick(worker)
      end
      worker
    end
    define_method(:generations) do |from, count|
      watch = Pando::Server::ThreadWatch.new(Config.new(:try, { requests: 20 }))
      Pando::ForkSafety::Libraries.watch
      worker = serve(watch, from, 400)
      watch.before_fork(worker, :mold)
      told << worker.told << in_child { serve(watch, from, count).told }
    end
  RUBY
  # The task starts with the app or with a request.
  APP = <<~RUBY
    require "concurrent-ruby"
    module Tasks
      def self.start
        Concurrent::TimerTask.execute(execution_interval: 0.1) { nil }
        @pid = Process.pid
      end
      def self.check = @pid == Process.pid || start
    end
    Tasks.start if ENV["AT_LOAD"]
    requests = Hash.new(0)
    run lambda { |env|
      number = requests[Process.pid] += 1
      Tasks.start if env["PATH_INFO"] == "/start"
      Tasks.check if env["PATH_INFO"] == "/checked"
      Tasks.check if env["PATH_INFO"] == "/late" && number >= 50
      [200, {}, []]
    }
  RUBY
  LOST = /\ANo forked process has the timer task of the application that config\.ru:4 starts: its work silently stops /

  def bundle = @bundle ||= Bench::Bundle.new("queued", GEMFILE).prepare

  # @return [Array] what the script has told
  def run_ruby(script)
    output, status = Open3.capture2e(bundle.environment, "timeout", "60", RbConfig.ruby, "-W0", "-e",
                                     "#{BEGINNING}#{script}\nputs JSON.generate(told)")
    assert_predicate status, :success?, output
    JSON.parse(output.lines.last)
  end

  def test_tasks_that_run_and_wait
    told = run_ruby(<<~RUBY)
      told << Executors.count(now) << Executors.names
      5.times { POOL.post { block } }
      wait_until { GATE.num_waiting == 2 }
      told << Executors.count(now) << Executors.names
      5.times { GATE << true }
      wait_until { Executors.count(now).zero? }
      told << Executors.names
    RUBY

    assert_equal [0, [], 5], told.first(3)
    # They run in no file, but in the script that -e brought.
    assert_equal [5, 2], [told[3].size, told[3].grep(/\A-e:\d+.* \(running\)\z/).size]
    assert_equal 3, told[3].grep(/\A-e:\d+\z/).size
    assert_empty told.last
  end

  def test_a_task_that_raises_is_over
    told = run_ruby(<<~RUBY)
      POOL.post { raise "expected" }
      POOL.post { GATE << true }
      GATE.pop
      Pando::ForkSafety::QueuedWork.wait(now + 30)
      told << Executors.count(now)
    RUBY

    assert_equal [0], told
  end

  def test_tasks_for_later_and_periodic_ones
    told = run_ruby(<<~RUBY)
      Concurrent::ScheduledTask.execute(600, args: [String], executor: POOL) { |_| nil }
      timer = Concurrent::TimerTask.new(execution_interval: 600) { nil }
      timer.execute
      told << Executors.count(now) << Executors.count(now + 700) << Executors.names
      Concurrent::ScheduledTask.execute(0.3) { told << "done" }
      Pando::ForkSafety::QueuedWork.wait(now + 30)
    RUBY

    assert_equal [0, 1, ["String (scheduled)"], "done"], told
  end

  # The parent goes on with its tasks; what a child has of them runs nowhere.
  def test_a_copy_of_the_queue_in_a_child_is_nobodys
    told = run_ruby(<<~RUBY)
      5.times { POOL.post { block && told << Process.pid } }
      Concurrent::ScheduledTask.execute(600) { nil }
      wait_until { GATE.num_waiting == 2 }
      child = in_child do
        before = [Executors.count(now + 700), Executors.names]
        POOL.post { told << "the child's" }
        Pando::ForkSafety::QueuedWork.wait(now + 30)
        [*before, told]
      end
      5.times { GATE << true }
      Pando::ForkSafety::QueuedWork.wait(now + 30)
      told = [child, told.size, Executors.count(now + 700)]
    RUBY

    assert_equal [[0, [], ["the child's"]], 5, 1], told
  end

  def test_what_good_job_queues_is_in_a_database
    assert_equal [0], run_ruby(<<~RUBY)
      pool = Concurrent::ThreadPoolExecutor.new(name: "GoodJob::Notifier", max_threads: 1)
      pool.post { block }
      wait_until { GATE.num_waiting == 1 }
      module GoodJob; class TimerSet < Concurrent::TimerSet; end; end
      Concurrent::ScheduledTask.execute(600, timer_set: GoodJob::TimerSet.new) { nil }
      told << Executors.count(now + 700)
    RUBY
  end

  # A job that was interrupted has been given back; its pool counts it for ever, for its thread was killed.
  def test_what_solid_queue_runs_is_in_a_database
    assert_equal [0, []], run_ruby(<<~RUBY)
      module SolidQueue
        class Pool
          def executor = @executor ||= Concurrent::ThreadPoolExecutor.new(max_threads: 1)
        end
        class ThreadPool < Pool; end
      end
      pool = SolidQueue::ThreadPool.new
      pool.executor.post { Thread.current.kill }
      pool.executor.post { block }
      told << Executors.count(now + 700) << Executors.names
    RUBY
  end

  def test_a_child_lacks_a_timer_task_until_it_starts_one_itself
    assert_equal [[1], [], [], [1]], run_ruby(<<~RUBY)
      #{LINES}
      def task
        Concurrent::TimerTask.execute(execution_interval: 60) { nil }
      end
      LINE = __LINE__ - 2
      task
      told << lines
      told += in_child do
        copy = lines
        Concurrent::ScheduledTask.execute(600) { nil }
        [copy, lines, task && lines]
      end
    RUBY
  end

  def test_a_timer_task_that_is_doing_its_work_or_has_been_shut_down
    assert_equal [[1], []], run_ruby(<<~RUBY)
      #{LINES}
      LINE = __LINE__ + 1
      task = Concurrent::TimerTask.execute(execution_interval: 0.01) { block }
      wait_until { GATE.num_waiting == 1 }
      told << lines
      task.shutdown
      told << lines
    RUBY
  end

  def test_a_copy_of_a_timer_task_does_not_count_while_another_one_of_its_file_works
    assert_equal [%w[tasks:1 tasks:2], ["tasks:2"]], run_ruby(<<~RUBY)
      #{TASKS}
      start(1, "nil", seconds: 60)
      start(2, "block")
      told << found
      told << in_child do
        start(2, "block")
        wait_until { GATE.num_waiting == 1 }
        found
      end
    RUBY
  end

  def test_a_timer_task_that_waits_in_a_busy_executor_counts
    assert_equal [%w[tasks:1 tasks:2]], run_ruby(<<~RUBY)
      #{TASKS}
      executor = Concurrent::SingleThreadExecutor.new
      start(1, "block", executor: executor)
      wait_until { GATE.num_waiting == 1 }
      start(2, "nil", executor: executor)
      wait_until { executor.queue_length == 1 }
      told << found
    RUBY
  end

  def test_a_timer_task_with_a_block_of_c_code_counts
    assert_equal [["C code (no name)"]], run_ruby(<<~RUBY)
      require "pando/fork_safety/audit"
      Concurrent::TimerTask.execute(execution_interval: 60, &:itself)
      told << Pando::ForkSafety::Audit::TimerTask.all.map(&:key)
    RUBY
  end

  def test_a_timer_task_that_begins_late_has_three_times_as_many_requests_to_come_back
    assert_equal [["thread_tried"], ["thread_back 50"]], run_ruby("#{WATCH}\ngenerations(50, 400)")
  end

  def test_a_timer_task_has_come_back_with_the_request_that_starts_it
    assert_equal [["thread_tried"], ["thread_back 1"]], run_ruby("#{WATCH}\ngenerations(1, 5)")
  end

  def test_a_timer_task_of_a_library_that_starts_it_again_is_no_finding
    assert_equal [["bugsnag starts it again in each child"]], run_ruby(<<~RUBY)
      require "pando/fork_safety/audit"
      module Bugsnag; class Configuration; end; end
      eval("Concurrent::TimerTask.execute(execution_interval: 60) { nil }", binding, "/lib/bugsnag/sessions.rb")
      report = Pando::ForkSafety::Audit.threads
      told << report.threads.grep(Pando::ForkSafety::Audit::TimerTask).map(&:excuse)
      told.concat(report.findings)
    RUBY
  end

  def test_a_timer_task_of_the_app_that_no_worker_has_is_reported
    server = serve_app("workers 1", "AT_LOAD" => "1")
    found = nil
    under_requests(server, "/") { found = server.wait_past("finding.reported", kind: "lost_thread") }

    assert_match LOST, found["reason"]
    assert_equal "#{server.folder}/config.ru:4", found["location"]
  end

  def test_a_timer_task_that_a_worker_has_started_refuses_the_refork
    server = serve_app("workers 1")
    server.get("/start")
    refused = nil
    under_requests(server, "/") { refused = server.wait_for("generation.refused") { server.signal("USR2") } }

    assert_match LOST, refused["reason"]
  end

  def test_a_timer_task_that_a_hook_starts_is_no_obstacle
    server = serve_app("workers 1\nafter_worker_fork { Tasks.start }", "AT_LOAD" => "1")
    under_requests(server, "/") { 2.times { server.refork } }

    assert_empty server.complaints
  end

  def test_a_timer_task_that_the_app_starts_again_is_tried_out_and_no_obstacle
    server = serve_app("workers 1")
    under_requests(server, "/checked") { 2.times { server.refork } }

    assert_empty server.complaints
  end

  def test_a_timer_task_that_a_late_request_starts_again_is_no_obstacle
    server = serve_app("workers 1")
    60.times { server.get("/late") }
    under_requests(server, "/late") { server.refork }

    assert_empty server.complaints
  end

  private

  def serve_app(config, environment = {})
    serve(app: APP, config: "refork :manual\n#{config}", env: bundle.environment.merge(environment))
  end
end
