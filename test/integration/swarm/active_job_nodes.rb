# frozen_string_literal: true

require "test_helper"
require "json"
require "support/postgresql"
require "support/servers"
require "tmpdir"
require_relative "../../../bench/support/bundle"

# What the nodes of a Rails application have to show whose jobs are in PostgreSQL. A test class that includes this names
# the queue's library.
module ActiveJobNodes
  include Support::Servers

  APP = File.expand_path("../../fixtures/apps/active_job", __dir__)
  OUTAGE = Float(ENV.fetch("PANDO_TEST_OUTAGE", "1.5")) # seconds without a database
  FOR_EVER = 600 # seconds
  BOOT_WITHIN = 120 # seconds: it is a Rails application, and the machine may be busy
  LONG = 10.0 # of such an outage the share of CPU time is measured
  TROUBLE = /\.(?:lost|killed|failed|discarded|refused|unsafe|reported|stuck)\z/

  def setup
    skip Support::PostgreSQL.obstacle if Support::PostgreSQL.obstacle

    @folder = Dir.mktmpdir("pando-jobs")
    File.chmod(0o755, @folder) # another user's server may be in it
    @postgresql = Support::PostgreSQL.new(File.join(@folder, "pg")).start
    environment = Bench::Bundle.new("active_job", File.join(APP, "Gemfile")).prepare.environment
                               .merge("PGHOST" => @postgresql.folder, "APP_QUEUE" => queue, "RAILS_ENV" => "production")
    @producer = IO.popen([environment, RbConfig.ruby, "-W0", File.join(APP, "producer.rb")], "r+")
    assert_equal "ready\n", @producer.gets
    @server = serve(command: "swarm", listen: false, config: config, env: environment, ready: false)
    @server.wait_past("generation.current", patience: BOOT_WITHIN)
  end

  def teardown
    super
    @producer&.close
    @postgresql&.stop
    FileUtils.rm_rf(@folder) if @folder
  end

  def test_no_job_is_lost
    jobs_are_done_in_each_generation
    waiting_jobs_are_told
    a_job_that_does_not_end_is_given_back
    assert_empty(troubles)
    a_killed_nodes_job_is_done_again
    nodes_outlive_an_outage
    a_stop_lets_jobs_end
  end

  private

  def config
    <<~RUBY
      refork :manual
      fork_safety sockets: :refuse, threads: :refuse
      node :#{queue}, count: 2, concurrency: 2, queues: #{queues}, require: "#{APP}/config/environment.rb",
                      quiet_timeout: 3, #{options}
    RUBY
  end

  def queues = %w[*]

  def jobs_are_done_in_each_generation
    order(0...20)
    order(20..20, wait: 0.5)
    wait_for_done(0..20)
    @server.refork
    workers = nodes
    order(100...120)
    wait_for_done(100...120)

    assert_empty(who_did(100...120) - workers)
  end

  # The nodes take four at a time, and look at the queue every few seconds.
  def waiting_jobs_are_told
    order(150...162, gate: gate("waiting"))
    wait_until(timeout: 60, message: "waiting jobs") do
      loads(@server).any? { |load| load.all? { |number| number&.positive? } }
    end
    open_gate("waiting")
    wait_for_done(150...162)
    wait_until(timeout: 60, message: -> { loads(@server).inspect }) { loads(@server).all? { |load| load == [0, 0] } }
  end

  def a_killed_nodes_job_is_done_again
    order(200..200, seconds: FOR_EVER)
    victim = wait_for_begun(200)
    @server.wait_for("worker.ready") { Process.kill("KILL", victim) }
    wait_for_done(200..200)

    refute_equal([victim], who_did(200..200))
    assert_equal([["begun"], ["begun"], ["done"]], kinds_of(200))
  end

  # Its patience is over before that job is.
  def a_job_that_does_not_end_is_given_back
    order(210..210, seconds: FOR_EVER)
    leaving = wait_for_begun(210)
    @server.wait_for("worker.exited", pid: leaving) { Process.kill("TERM", leaving) }
    wait_for_done(210..210)

    refute_equal([leaving], who_did(210..210))
    assert_equal([["begun"], ["begun"], ["done"]], kinds_of(210))
    assert_empty(@server.events("work.dropped")) # it is in the queue
  end

  def nodes_outlive_an_outage
    stayed = nodes
    order(300...310)
    wait_for_done(300...310)
    order(310..310, gate: gate("outage"))
    wait_for_begun(310)
    share = without_database(stayed) { open_gate("outage") } # it ends when nobody can be told
    order(320...330)
    wait_for_done([310, *320...330])

    assert_equal(2, stayed.size)
    assert_equal(stayed.sort, nodes.sort)
    return unless OUTAGE >= LONG

    assert_operator(share, :<, 0.05)
    @server.wait_past("broker.found")
  end

  def a_stop_lets_jobs_end
    order(400..400, gate: gate("stop"))
    wait_for_begun(400)
    @server.wait_for("monitor.stopping") { @server.signal("TERM") }
    open_gate("stop")

    assert_predicate(@server.wait_for_exit, :success?, @server.output)
    assert_equal([["begun"], ["done"]], kinds_of(400))
    wait_until(message: "no connection") { connections.empty? }
  end

  # @return [Float] what share of a CPU each of the nodes has taken meanwhile
  def without_database(pids)
    @postgresql.stop
    before = cpu_seconds(pids)
    yield
    pause(OUTAGE)
    (cpu_seconds(pids) - before) / OUTAGE / pids.size
  ensure
    @postgresql.resume
  end

  def cpu_seconds(pids)
    ticks = pids.sum { |pid| File.read("/proc/#{pid}/stat").rpartition(")").last.split.values_at(11, 12).sum(&:to_i) }
    ticks.fdiv(Etc.sysconf(Etc::SC_CLK_TCK))
  end

  def gate(name) = File.join(@folder, name)
  def open_gate(name) = File.write(gate(name), "")

  def order(numbers, **how)
    @producer.puts(JSON.generate(numbers: numbers.to_a, seconds: 0, **how))

    assert_equal("ready\n", @producer.gets)
  end

  def wait_for_done(numbers)
    missing = nil
    wait_until(timeout: 120, message: -> { "jobs #{missing}\n#{@server.output[-4000..] || @server.output}" }) do
      done = effects("kind = 'done'").map { |number, _| number.to_i }
      (missing = numbers.to_a - done).empty?
    end
  end

  # @return [Integer] pid of the node that does it
  def wait_for_begun(number)
    wait_until(timeout: 120, message: "the beginning of job #{number}") do
      effects("kind = 'begun' AND number = #{number}").first&.last&.to_i
    end
  end

  def who_did(numbers)
    effects("kind = 'done'").select { |number, _| numbers.cover?(number.to_i) }.map { |_, pid| pid.to_i }.uniq
  end

  def kinds_of(number) = @postgresql.rows("SELECT kind FROM effects WHERE number = #{number} ORDER BY id")
  def effects(condition) = @postgresql.rows("SELECT number, pid FROM effects WHERE #{condition}")

  def connections
    @postgresql.rows("SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend' " \
                     "AND pid <> pg_backend_pid()")
  end

  def nodes = @server.nodes(queue).map(&:pid)
  def troubles = @server.events.select { |event| TROUBLE.match?(event["event"]) }
end
