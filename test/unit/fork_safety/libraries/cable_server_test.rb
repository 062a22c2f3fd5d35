# frozen_string_literal: true

require "test_helper"
require "open3"

# What is done with Action Cable's server, where its parts do not end as they should; test/integration/cable_test.rb has
# the real one. In a Ruby of its own, with stand-ins.
class CableServerTest < Minitest::Test
  STAND_IN = <<~RUBY
    require "monitor"
    require "pando/fork_safety/libraries/cable_server"
    require "pando/fork_safety/libraries"

    module ActionCable
      INTERNAL = { disconnect_reasons: { server_restart: "server_restart" } }.freeze
      module Server
        class Base
          attr_reader :mutex, :config
          def connections = @connections ||= []
          def initialize
            @mutex = Monitor.new
            @config = Struct.new(:cable).new({ adapter: "fake" })
          end
        end
      end
      module Connection; end
      module SubscriptionAdapter; class PostgreSQL; end; end
      @server = Server::Base.new
      class << self; attr_reader :server; end
    end

    Listener = Struct.new(:thread) do
      def initialize(thread)
        super
        @thread = thread
      end
    end
    class Adapter
      attr_reader :asked
      def initialize(listener: nil, broadcaster: nil)
        @listener = listener
        @broadcaster = broadcaster
      end
      def shutdown = (@asked = true) && sleep
    end
    class ActionCable::Connection::Base
      attr_accessor :said
      def close(**said) = self.said = said
    end
    Connection = ActionCable::Connection::Base

    CABLE = Pando::ForkSafety::Libraries::CableServer
    def set(name, value) = ActionCable.server.instance_variable_set(name, value)
    def get(name) = ActionCable.server.instance_variable_get(name)
    def sleeper = Thread.new { sleep }
    def seconds
      started = Process.clock_gettime(Process::CLOCK_MONOTONIC)
      yield
      Process.clock_gettime(Process::CLOCK_MONOTONIC) - started
    end
  RUBY

  # What is different in Rails 8.2, which CI does not have.
  RAILS_8_2 = <<~RUBY
    def (ActionCable.server).connections = (@connections_map ||= {}).values
    class ActionCable::Server::Socket
      attr_reader :connection
      def initialize(connection) = @connection = connection
      def close(_code = nil, _reason = nil) = raise("without a message")
    end
    class ClientSocket
      def initialize(socket) = @event_target = socket
    end
    class Stream
      def initialize(socket) = @socket_object = ClientSocket.new(socket)
    end
    class EventLoop
      attr_reader :map
      def initialize(connections)
        monitor = Struct.new(:value)
        @map = connections.to_h { |one| [Object.new, monitor.new(Stream.new(ActionCable::Server::Socket.new(one)))] }
      end
    end
    Executor = Struct.new(:pool) do
      def initialize(pool)
        super
        @executor = pool
      end
    end
    Pool = Struct.new(:calls, :tasks) do
      def scheduled_task_count = tasks.to_i
      def completed_task_count = 0
      def shutdown = calls << :shutdown
      def wait_for_termination(_seconds) = calls << :wait
    end
  RUBY

  def test_nothing_is_done_where_nothing_runs
    assert_equal "[]\ntrue\n", run_ruby("p CABLE.stop\np CABLE.say_goodbye")
  end

  # As Redis' adapter does while its server is down.
  def test_a_listener_that_does_not_end_is_ended
    assert_equal "[\"its listener\"]\nfalse\nnil\ntrue\n", run_ruby(<<~RUBY)
      thread = sleeper
      set(:@pubsub, Adapter.new(listener: Listener.new(thread)))
      p CABLE.stop(0.2)
      thread.join(10)
      p thread.alive?
      p get(:@pubsub)
      p seconds { CABLE.stop(5) } < 1
    RUBY
  end

  # What it has queued would be lost; no child uses it.
  def test_a_writer_that_is_slow_goes_on
    assert_equal "[\"its writer, which has broadcasts queued\"]\ntrue\nnil\n", run_ruby(<<~RUBY)
      thread = sleeper
      set(:@pubsub, Adapter.new(broadcaster: Listener.new(thread)))
      p CABLE.stop(0.2)
      p thread.alive?
      p get(:@pubsub)
    RUBY
  end

  def test_postgresqls_listener_is_not_waited_for
    assert_equal "[]\nfalse\nnil\n", run_ruby(<<~RUBY)
      thread = sleeper
      adapter = Class.new(Adapter) { def self.name = "ActionCable::SubscriptionAdapter::PostgreSQL" }
      set(:@pubsub, asked = adapter.new(listener: Listener.new(thread)))
      p CABLE.stop(5)
      p thread.alive?
      p asked.asked
    RUBY
  end

  def test_clients_are_told_once
    assert_equal <<~TEXT, run_ruby(<<~RUBY)
      false
      server_restart true
      nil
      true
    TEXT
      set(:@connections, [one = Connection.new])
      p CABLE.say_goodbye
      puts one.said.values.join(" ")
      one.said = nil
      CABLE.say_goodbye
      p one.said
      get(:@connections).clear
      p CABLE.say_goodbye
    RUBY
  end

  # A worker would take it for a task that is left to do, and a worker that stays needs a new one.
  def test_the_heartbeat_ends_with_the_last_connection
    assert_equal "false\n[nil]\n[:shutdown]\nnil\n", run_ruby(<<~RUBY)
      timer = Struct.new(:calls) { def shutdown = calls << :shutdown }.new([])
      set(:@heartbeat_timer, timer)
      set(:@connections, [Connection.new])
      p CABLE.say_goodbye
      p [timer.calls.first]
      get(:@connections).clear
      CABLE.say_goodbye
      p timer.calls
      p get(:@heartbeat_timer)
    RUBY
  end

  def test_a_child_forgets_all_and_its_parents_name
    assert_equal "[nil, nil, nil, nil, nil]\n{:adapter=>\"fake\"}\nmine\n", run_ruby(<<~RUBY)
      names = %i[@heartbeat_timer @worker_pool @pubsub @event_loop @connections]
      names.each { |name| set(name, Object.new) }
      cable = ActionCable.server.config.cable
      cable[:id] = "ActionCable-PID-1"
      CABLE.forget
      p names.map { |name| get(name) }
      puts cable.inspect.sub("adapter: ", ":adapter=>")
      cable[:id] = "mine"
      CABLE.forget
      puts cable[:id]
    RUBY
  end

  # Nobody else would learn of it, and its client is cut off.
  def test_a_client_that_cannot_be_told_is_reported
    assert_equal <<~TEXT, run_ruby(<<~RUBY)
      false
      ["its WebSockets, whose clients could not be told to reconnect (ArgumentError: no such keyword)"]
      []
      []
    TEXT
      broken = Class.new(Connection) { def close(**) = raise(ArgumentError, "no such keyword") }
      set(:@connections, [broken.new])
      p CABLE.say_goodbye
      p CABLE.stop(0)
      p CABLE.stop(0)
      CABLE.forget
      p CABLE.stop
    RUBY
  end

  def test_a_client_that_has_gone_is_not_reported
    assert_equal "false\n[]\n", run_ruby(<<~RUBY)
      set(:@connections, [Class.new(Connection) { def close(**) = raise(Errno::EPIPE) }.new])
      p CABLE.say_goodbye
      p CABLE.stop(0)
    RUBY
  end

  # From Rails 8.2 on, a stream speaks to a socket, which has the connection.
  def test_clients_are_told_by_rails_8_2
    assert_equal <<~TEXT, run_ruby(RAILS_8_2 + <<~RUBY)
      false
      ["server_restart true", "server_restart true"]
      false
      [nil, nil]
      true
    TEXT
      known, unwelcomed = Array.new(2) { Connection.new }
      set(:@connections_map, { 1 => known })
      set(:@event_loop, event_loop = EventLoop.new([known, unwelcomed]))
      p CABLE.say_goodbye
      p [known, unwelcomed].map { |one| one.said.values.join(" ") }
      [known, unwelcomed].each { |one| one.said = nil }
      p CABLE.say_goodbye
      p [known, unwelcomed].map(&:said)
      get(:@connections_map).clear
      event_loop.map.clear
      p CABLE.say_goodbye
    RUBY
  end

  def test_the_executor_of_rails_8_2_ends
    assert_equal "true\n[]\n[:shutdown, :wait]\n[nil, {}]\n[nil, nil]\n", run_ruby(RAILS_8_2 + <<~RUBY)
      set(:@executor, Executor.new(pool = Pool.new([])))
      set(:@connections_map, { 1 => Connection.new })
      get(:@connections_map).clear
      pool.tasks = 1
      p !CABLE.say_goodbye # an unsubscription is waiting
      pool.tasks = 0
      p CABLE.stop
      p pool.calls
      p [get(:@executor), get(:@connections_map)]
      set(:@executor, Executor.new(pool))
      CABLE.forget
      p [get(:@executor), get(:@connections_map)]
    RUBY
  end

  private

  def run_ruby(script)
    command = [RbConfig.ruby, "-w", "-I", Support::Checkout.path("lib"), "-e", STAND_IN + script]
    output, status = Open3.capture2e({ "RUBYOPT" => nil }, *command)
    assert_predicate status, :success?, output
    output
  end
end
