# frozen_string_literal: true

require_relative "rows_app"
require "pando/fork_safety/libraries/known"

# What Rails loads, native libraries and schedulers.
class OtherRowsTest < Minitest::Test
  include RowsApp

  FINE = %w[bootsnap mini_mime nokogiri google-protobuf ffi timeout async].freeze
  CONNECTED = %w[httpclient stripe].freeze
  WORKERS = 3

  def test_each_works_in_the_third_generation
    start(FINE)
    uses = third_generation_uses(FINE)

    uses.each { |use| assert use["result"]["said"], "#{use["row"]}: #{use["result"]}" }
    assert_empty @server.events("finding.reported")
  end

  def test_each_process_has_connections_of_its_own
    start(CONNECTED)
    earlier = connections(use_all(CONNECTED, 0))
    uses = third_generation_uses(CONNECTED)

    uses.each { |use| assert use["result"]["said"], "#{use["row"]}: #{use["result"]}" }
    assert_empty connections(uses) & earlier
    assert_equal connections(uses), connections(use_all(CONNECTED, REFORKS)), "they are kept"
    assert_empty @server.events("finding.reported")
  end

  # Each worker uses it in after_worker_fork, and each request says how many processes it counts.
  def test_semian_counts_each_worker_once
    @config = 'after_worker_fork { USES["semian"].call("hook") }'
    start(%w[semian semian-end], workers: WORKERS)
    0.upto(REFORKS) do |generation|
      assert_equal generation, @server.refork["generation"] if generation.positive?
      @server.wait_for_leavers
      assert_equal({ "said" => true, "processes" => WORKERS, "own" => 0 }, use("semian")["result"])
    end
    assert_empty troubles
  ensure
    use("semian-end") if @server
  end

  def test_a_worker_with_a_javascript_context_is_not_promoted
    assert_not_promoted("mini_racer", /mini_racer: V8 runs threads of its own/)
  end

  def test_javascript_runs_in_the_third_generation_as_the_table_advises
    code, @config = advice("mini_racer").match(/\ACall (\S+) before .* add (prepared_library "mini_racer") to/).captures
    @environment = { "APP_ADVICE" => code }
    assert_works_in_the_third_generation("mini_racer")
    assert_empty @server.events("library.reported")
  end

  def test_a_worker_with_a_scheduler_is_not_promoted
    assert_not_promoted("rufus-scheduler", /rufus-scheduler: A child lacks the scheduler's thread/)
  end

  # The scheduler's jobs are done in the service of the newest generation.
  def test_a_scheduler_lives_in_a_service_as_the_table_advises
    @config = advice("rufus-scheduler")[/service\(:scheduler\) .*\}/].sub("…", <<~'RUBY')
      scheduler.every("0.4s") { Net::HTTP.get(URI("#{ENV["APP_SINK"]}/job-in-#{Process.pid}-done")) }
    RUBY
    start(%w[rufus-scheduler])
    REFORKS.times { @server.refork }
    service = @server.wait_past("service.ready", generation: REFORKS)
    @sink.wait_for("job-in-#{service["pid"]}-done")
    assert_empty troubles
  end

  def test_a_worker_that_listens_is_not_promoted
    start(%w[listen])
    assert use("listen")["result"]["said"]
    done = false
    requests = Thread.new { use("threads") until done }
    refused = @server.wait_for("generation.refused") { @server.signal("USR2") }

    assert_match(/No forked process has the thread .* of listen/, refused["reason"])
    @server.wait_past("worker.exited", generation: refused["generation"]) # the canary, which lacks the thread
    assert use("listen")["result"]["said"]
  ensure
    done = true
    requests&.join
  end

  def test_workers_listen_in_the_third_generation_as_the_table_advises
    start_again, stop = advice("listen").match(/(after_worker_fork) { .* } and .* (before_fork { .* })\.\z/).captures
    @config = "#{start_again} { Hearing.start }\n#{stop}"
    assert_works_in_the_third_generation("listen")
    assert_empty @server.events("finding.reported")
  end

  private

  def group = "other"
  def config = @config.to_s
  def environment = { "APP_FOLDER" => @folder, **@environment.to_h }
  def advice(library) = Pando::ForkSafety::Libraries::Known.library(library).rules.first.advice

  def assert_not_promoted(row, reason)
    start([row])
    assert use(row)["result"]["said"]
    discarded = @server.wait_for("generation.discarded") { @server.signal("USR2") }

    assert_match(reason, discarded["reason"])
    assert use(row)["result"]["said"]
  end

  def assert_works_in_the_third_generation(row)
    start([row])
    uses = third_generation_uses([row])

    uses.each { |use| assert use["result"]["said"], "#{use["row"]}: #{use["result"]}" }
  end

  def connections(uses) = uses.map { |use| use["result"]["connection"] }

  # Each answer has the last part of the path.
  def answers
    said = ->(record) { record.path[%r{[^/]+\z}] }
    {
      %r{\A/echo/} => ->(record, _socket) { said.call(record) },
      %r{\A/connection/} => ->(record, socket) { "#{said.call(record)} #{socket.remote_address.ip_port}" },
      %r{\A/v1/customers/} => lambda do |record, socket|
        JSON.generate(id: said.call(record), object: "customer", name: socket.remote_address.ip_port.to_s)
      end
    }
  end
end
