# frozen_string_literal: true

require_relative "broker_nodes"
require "support/cable"
require "support/rabbitmq_server"

# Promise: a message of RabbitMQ is done by a node, or is still RabbitMQ's: across reforks, kills, stops and a broker
# that goes away.
class BunnyNodesTest < Minitest::Test
  include BrokerNodes

  # It takes seconds to start: all tests have the same.
  def self.broker
    @broker ||= begin
      folder = Dir.mktmpdir("pando-rabbitmq")
      Minitest.after_run do
        @broker.shut
        FileUtils.rm_rf(folder)
      end
      Support::RabbitMQServer.new(folder).start
    end
  end

  def setup
    super
    @broker = self.class.broker.wait
    listen = -> { TCPServer.new("127.0.0.1", @cable_port ||= free_port) }
    @cable = Support::Cable.new(listen) { TCPSocket.new("127.0.0.1", @broker.port) }
    console.call("declare")
    console.call("%w[notes dead].each { |name| channel.queue_purge(name) }.size")
  end

  def teardown
    super
    @cable&.close
  end

  def test_messages_are_done_across_a_refork_a_kill_and_a_stop
    server = swarm("#{line(count: 2, concurrency: 2)}, quiet_timeout: 0.2", config: "stop_timeout 1")
    first = publish("first", 40)
    wait_for_notes("done", first)
    assert_equal 1, server.refork["generation"]
    second = publish("second", 40)
    wait_for_notes("done", second)

    assert_equal (first + second).sort, names("done").sort # each once
    kill_a_node_at_work(server)
    late = publish("late", 8, "until never") # more than the nodes do at once
    wait_until(message: "busy nodes") { (names("begun") & late).size == 4 }
    assert_predicate server.stop, :success?, server.output
    wait_until(message: "all of them in the queue") { console.call("waiting('notes')") == 8 }
  end

  def test_what_becomes_of_a_message_and_of_a_broker
    server = swarm(line(count: 2, concurrency: 1))
    console.call("publish('notes', ['bad raise', 'gone exit', 'no reject', 'again requeue', 'good'])")
    wait_for_notes("done", %w[no again good])
    wait_until(message: "dead letters") { console.call("waiting('dead')") == 3 }
    server.wait_past("job.failed", reason: "exit (SystemExit)")
    assert_equal ["bad raise", "gone exit", "no reject"], console.call("payloads('dead')").sort
    assert_equal([false, true], notes.select { |note| note["done"] == "again" }.map { |note| note["redelivered"] })
    assert_equal 2, server.nodes("bunny").size
    survive_an_outage(server)

    assert_empty server.events("worker.lost")
    assert_predicate server.stop, :success?, server.output
  end

  # The one that runs meanwhile cannot be acknowledged, so it runs once more.
  def test_messages_that_wait_in_a_node_run_once_although_the_connection_breaks
    server = swarm("#{line(count: 1, concurrency: 1)}, prefetch: 3")
    publish("running", 1, "until #{go_file}")
    publish("waiting", 2)
    wait_for_notes("begun", %w[running0])
    2.times do
      wait_until(message: "an empty queue") { console.call("waiting('notes')").zero? }
      server.wait_for("broker.lost") { @cable.cut }
      server.wait_for("broker.found") { @cable.mend }
    end
    go
    publish("last", 1)
    wait_for_notes("done", %w[last0])

    assert_equal({ "running0" => 2, "waiting0" => 1, "waiting1" => 1, "last0" => 1 }, names("done").tally)
  end

  def test_its_runner_keeps_the_rules_and_does_active_jobs
    options = "{ consumer: 'NoteConsumer', connection: ENV.fetch('BROKER_URL') }"
    assert_empty console.call("lint(:bunny, ['notes'], #{options}) { publish('notes', %w[one two]) }")
    options = options.sub("NoteConsumer", "ActiveJob::QueueAdapters::SneakersAdapter::JobWrapper")
    failed = console.call("run(:bunny, ['default'], #{options}) { NoteJob.perform_later('active') }")

    assert_equal 0, failed
    assert_equal "sneakers", note_of("done", "active")["adapter"]
  end

  private

  def obstacle = Support::RabbitMQServer.obstacle
  def jobs = "bunny_jobs.rb"

  def environment
    { "BROKER_URL" => @broker.url, "NODE_URL" => "amqp://guest:guest@127.0.0.1:#{@cable_port}",
      "WITH_ACTIVE_JOB" => ("1" if name.include?("active_jobs")) }
  end

  def line(count:, concurrency:)
    ":bunny, count: #{count}, concurrency: #{concurrency}, queues: %w[notes], consumer: 'NoteConsumer', " \
      "connection: ENV.fetch('NODE_URL')"
  end

  # @return [Array<String>] their names
  def publish(name, count, order = "")
    Array.new(count) { |number| "#{name}#{number}" }.tap do |names|
      console.call("publish('notes', #{names.map { |one| "#{one} #{order}" }})")
    end
  end

  def kill_a_node_at_work(server)
    publish("killed", 3, "until #{go_file}") # more than one node does at once
    wait_for_notes("begun", %w[killed0 killed1 killed2])
    victim = note_of("begun", "killed0")["pid"]
    server.wait_for("worker.ready") { Process.kill("KILL", victim) }
    wait_until(message: "another try") { names("begun").count("killed0") == 2 }
    go
    wait_for_notes("done", %w[killed0 killed1 killed2])
    assert_equal true, note_of("done", "killed0")["redelivered"]
  end

  def survive_an_outage(server)
    publish("during", 1, "until #{go_file}")
    wait_for_notes("begun", %w[during0])
    outage(server, "bunny") do |seconds|
      @cable.cut
      2.times { |number| server.wait_past("broker.lost", slot: number) }
      go
      wait_for_notes("done", %w[during0])
      waiting = publish("meanwhile", 5)
      sleep(seconds)
      @cable.mend
      2.times { |number| server.wait_past("broker.found", slot: number) }
      wait_for_notes("done", waiting)
    end
    wait_until(message: "an empty queue") { console.call("waiting('notes')").zero? }
  end
end
