# frozen_string_literal: true

require "test_helper"
require "support/census"
require "support/load"
require "support/servers"

# Promise: kill -9 of any one process except the monitor, and the cluster is back at full strength within 3 s;
# only requests inside a killed worker fail.
class KillAnyProcessTest < Minitest::Test
  include Support::Servers

  WORKERS = 4
  KILLS = Integer(ENV.fetch("CHAOS_KILLS", "25"), 10)
  CLIENTS = 6
  WITHIN = 3 # seconds
  # Two kills are this far apart at most: some come during a rollout, some in quiet times.
  PAUSE = 0.08
  SEED = Integer(ENV.fetch("CHAOS_SEED", Random.new_seed % 1_000_000))

  def setup
    puts "CHAOS_SEED=#{SEED}"
    @random = Random.new(SEED)
    @killed = []
  end

  def teardown
    @load&.stop
    super
  end

  def test_full_strength_after_each_kill_and_only_requests_of_the_killed_fail
    start("reactor false")
    kill_all_kinds { @census.full?(WORKERS) }

    assert_only_requests_of_the_killed_failed
    assert_clean_end
  end

  def test_behind_the_reactor
    start("reactor true")
    kill_all_kinds { @census.full?(WORKERS) && @census.reactors.any? }

    assert_only_a_dead_reactors_connections_failed
    assert_clean_end
  end

  private

  def kill_all_kinds
    KILLS.times do
      @load.wait_for_more(1)
      kill_one
      message = -> { "full strength after #{@killed.last.title} was killed: #{@census}" }
      wait_until(timeout: WITHIN, message: message) { !@census.alive?(@killed.last.pid) && yield }
      @load.wait_for_more(CLIENTS * 2) # lest one request meets two kills
    end
    @load.wait_for_more(100)
    @load.stop
  end

  def assert_clean_end
    wait_until(message: "the service, which waits longer after each death") { @census.services.any? }
    wait_until(message: -> { "the end of the dead: #{@server.tree.zombies}" }) { nothing_left_behind? }
    assert_predicate(@server.stop, :success?, @server.output[-3000..])
  end

  def start(mode)
    @server = serve(app: Support::Load::APP, config: <<~RUBY)
      #{mode}
      workers #{WORKERS}
      refork after: [100]
      service(:ticker) { |service| nil until service.wait(1) }
    RUBY
    @census = Support::Census.new(@server)
    @load = Support::Load.start(@server.method(:connect), clients: CLIENTS, seconds: 0.002)
  end

  def kill_one
    IO.select(nil, nil, nil, @random.rand * PAUSE)
    victim = @server.tree.children.reject(&:zombie?).sort_by(&:pid).sample(random: @random)
    @killed << victim
    Process.kill("KILL", victim.pid)
  rescue Errno::ESRCH
    @killed.pop # it was about to leave, and is gone
    retry
  end

  def nothing_left_behind? = @server.tree.zombies.empty? && @server.tree.grandchildren.empty?

  # One at most for each of them, and each one that reached an app did so in one of them.
  def assert_only_requests_of_the_killed_failed
    workers = @killed.map(&:pid) & worker_pids
    failed_in = @load.failures.map { |failure| begun[failure.number] }

    assert_operator(@load.failures.size, :<=, workers.size, @load.failures.map(&:error).tally.to_s)
    others = failed_in.compact - workers
    assert_empty(others, @server.events.select { |event| others.include?(event["pid"]) }.join("\n"))
    assert_equal(failed_in.compact.uniq, failed_in.compact)
  end

  # What a worker was doing is done by another one.
  def assert_only_a_dead_reactors_connections_failed
    reactors = @killed.count { |victim| victim.title.start_with?("pando reactor") }

    assert_operator(@load.failures.size, :<=, reactors * CLIENTS, @load.failures.map(&:error).tally.to_s)
    assert_operator(reactors, :<, KILLS)
    refute_match(/ 50\d /, @load.failures.map { |failure| failure.error.message }.join)
  end

  # By the events: a title may have changed since it was read.
  def worker_pids
    @server.events.select { |event| event["event"].start_with?("worker.") }.filter_map { |event| event["pid"] }.uniq
  end

  # @return [Hash{Integer => Integer}] request number => pid that called the app for it
  def begun
    @begun ||= File.readlines(File.join(@server.folder, "begun")).to_h { |line| line.split.map(&:to_i) }
  end
end
