# frozen_string_literal: true

require "test_helper"
require "support/sidekiq_swarm"

# Promise: a scheduled job and a retry are done even if the process or its connection breaks while the job is on its way
# to its queue.
class SidekiqScheduledJobsTest < Minitest::Test
  include Support::SidekiqSwarm

  # Sidekiq looks for due jobs every second. A middleware decides about each push by what the test defines as `push`.
  COMMON = <<~RUBY.freeze
    require #{JOBS.dump}
    Sidekiq.configure_server do |config|
      config[:poll_interval_average] = 1
      config.client_middleware do |chain|
        chain.add(Class.new { def call(_, job, *) = push(job["args"].first) { yield } })
      end
    end
    # Whether nobody has called this before with that name.
    def first_time?(name)
      File.open(name, File::WRONLY | File::CREAT | File::EXCL) { true }
    rescue Errno::EEXIST
      false
    end
    def push(_name) = yield
  RUBY

  AGAIN = <<~RUBY
    require "pando/swarm/runners/sidekiq/due_jobs"
    Pando::Swarm::Runners::Sidekiq::DueJobs.send(:remove_const, :AGAIN)
    Pando::Swarm::Runners::Sidekiq::DueJobs::AGAIN = %d
  RUBY

  def test_a_process_that_is_killed_between_the_removal_and_the_push_loses_no_job
    server = swarm("count: 2", required: jobs(<<~RUBY, again: 1))
      def push(name)
        Process.kill(:KILL, Process.pid) && sleep if first_time?("push-of-\#{name}")
        yield
      end
    RUBY
    schedule("scheduled")
    wait_for_end(server, %w[scheduled]) # the next kill must not interrupt it
    schedule("retried", set: "retry")
    wait_for_end(server, %w[scheduled retried])

    assert_equal 2, server.events("worker.lost").size
    assert_equal [1, 1], ended(server).values.map(&:size)
    assert_predicate server.stop, :success?
    assert_empty left
  end

  # Redis has moved the job, and the scheduler never hears of it.
  def test_a_lost_reply_of_redis_loses_no_job
    server = swarm("count: 1", required: jobs(<<~RUBY))
      RedisClient.prepend(Module.new do
        def call(*command, **)
          answer = super
          lost = command.include?("schedule") && answer.to_s.include?("answered") && first_time?("reply")
          lost ? close && raise(RedisClient::ConnectionError, "the reply is lost") : answer
        end
      end)
    RUBY
    schedule("answered")
    wait_for_end(server, %w[answered])

    assert File.exist?(File.join(server.folder, "reply"))
    assert_predicate server.stop, :success?
    assert_empty left
  end

  def test_a_job_that_a_middleware_refuses_stays_and_holds_up_no_other
    server = swarm("count: 1", required: jobs(<<~RUBY))
      def push(name)
        raise "not now" if name == "refused"

        yield unless name == "stopped"
      end
    RUBY
    %w[refused stopped other].each { |name| schedule(name) }
    wait_for_end(server, %w[other])
    wait_until(message: -> { [left, scheduled] }) do
      left == %w[pando:sidekiq:holders schedule] && scheduled == [["refused"]]
    end

    assert_empty @redis.call("ZRANGE", "schedule", 0, Time.now.to_i, "BYSCORE"), "it is tried again at once"
    assert_equal %w[other], began(server).keys
    assert_predicate server.stop, :success?
  end

  # Each is due again before the next one has been refused.
  def test_retries_that_are_refused_again_and_again_do_not_hold_up_scheduled_jobs
    server = swarm("count: 1", required: jobs(<<~RUBY, again: 0))
      def push(name) = name.start_with?("refused") ? raise("not now") : yield
    RUBY
    %w[refused1 refused2].each { |name| schedule(name, set: "retry") }
    schedule("other")
    wait_for_end(server, %w[other])

    assert_equal %w[other], began(server).keys
  end

  # It ends the scheduler's thread, because it is no StandardError.
  def test_a_job_whose_push_raises_an_exception_of_any_kind_holds_up_no_other
    server = swarm("count: 1", required: jobs(<<~RUBY))
      Sidekiq.configure_server do |config|
        config.error_handlers << lambda do |error, context, *|
          File.write("reported", [error.class, context[:payload]].join(" "), mode: "a")
        end
      end
      def push(name)
        name == "broken" ? raise(LoadError, "no such file") : yield
      end
    RUBY
    %w[broken other].each { |name| schedule(name) }
    wait_for_end(server, %w[other])

    assert_equal %w[other], began(server).keys
    assert_match(/LoadError.*"jid":"broken"/, File.read(File.join(server.folder, "reported")))
    assert_predicate server.stop, :success?
    assert_equal %w[schedule], left
  end

  def test_a_job_whose_push_kills_the_process_holds_up_no_other
    server = swarm("count: 1", required: jobs(<<~RUBY))
      def push(name)
        Process.kill(:KILL, Process.pid) && sleep if name == "deadly"
        yield
      end
    RUBY
    %w[deadly other].each { |name| schedule(name) }
    wait_for_end(server, %w[other])

    refute_empty server.events("worker.lost")
    assert_equal %w[other], began(server).keys
  end

  def test_a_job_whose_push_kills_process_after_process_goes_to_the_dead_set
    server = swarm("count: 1", required: jobs(<<~RUBY, again: 0))
      def push(name)
        Process.kill(:KILL, Process.pid) && sleep if name == "deadly"
        yield
      end
    RUBY
    schedule("deadly")
    buried = server.wait_for("job.buried", patience: 60)
    schedule("other")
    wait_for_end(server, %w[other])

    assert_equal ["Job", "deadly", "default", 4], buried.values_at("name", "id", "queue", "deaths")
    assert_equal([1, 2, 3, 4], server.events("job.killed").map { |event| event["deaths"] })
    assert_equal 4, server.events("worker.lost").size
    assert_equal 1, @redis.call("ZCARD", "dead")
  end

  def test_a_class_of_the_app_that_moves_due_jobs_is_left_alone
    server = swarm("count: 1", required: jobs(<<~RUBY))
      class Own < Sidekiq::Scheduled::Enq
        def enqueue_jobs(...)
          File.write("own", "")
          super
        end
      end
      Sidekiq.configure_server { |config| config[:scheduled_enq] = Own }
    RUBY
    schedule("due")
    wait_for_end(server, %w[due])

    assert File.exist?(File.join(server.folder, "own"))
  end

  def test_without_reliable_sidekiq_itself_moves_due_jobs
    server = swarm("count: 1, reliable: false", required: jobs)
    schedule("due")
    wait_for_end(server, %w[due])

    assert_empty @redis.call("KEYS", "pando:*")
  end

  private

  # @param again [Integer, nil] seconds until a job is due again that could not be pushed; nil: the usual ones
  # @return [String] a file to require
  def jobs(text = "", again: nil)
    File.join(@folder, "scheduled.rb").tap { |path| File.write(path, [COMMON, *(AGAIN % again if again), text].join) }
  end

  # A job that is due.
  def schedule(name, set: "schedule")
    job = { class: "Job", queue: "default", jid: name, args: [name], retry: false, created_at: Time.now.to_f }
    @redis.call("ZADD", set, 1, JSON.generate(job))
  end

  # @return [Array<Array>] the arguments of scheduled jobs
  def scheduled = @redis.call("ZRANGE", "schedule", 0, -1).map { |job| JSON.parse(job)["args"] }

  # @return [Array<String>] keys that hold jobs
  def left
    keys = @redis.call("KEYS", "*")
    keys.grep(/\Apando:sidekiq:(?!(push-)?deaths:)/) | (keys & %w[schedule retry queue:default])
  end
end
