# frozen_string_literal: true

require_relative "arrivals"
require_relative "rows_app"
require "pando/fork_safety/libraries"
require "support/kafka_broker"
require "support/mariadb_server"
require "support/memcached_server"
require "support/mongo_server"
require "support/ports"
require "support/postgresql"
require "support/rabbitmq_server"
require "support/redis_server"

# Drivers of databases, caches and brokers. Where the row gives an advice, it is followed to the letter.
class DriverRowsTest < Minitest::Test
  include RowsApp
  include Arrivals

  ROWS = %w[bunny dalli karafka message_bus mongo mysql2 pg sqlite3 trilogy waterdrop].freeze
  REFUSED = %w[bunny mongo mysql2 pg sqlite3 trilogy].freeze
  HOOK = /\b(?:before_fork|after_\w+_fork) \{ .*? \}/

  # They take seconds to start: all tests have the same.
  def self.servers(bundle)
    @servers ||= begin
      folder = Dir.mktmpdir("pando-drivers")
      File.chmod(0o755, folder) # another user's server is in it
      servers = {
        rabbitmq: Support::RabbitMQServer.new(File.join(folder, "rabbitmq")), kafka: Support::KafkaBroker.new,
        mariadb: Support::MariaDBServer.new(folder), memcached: Support::MemcachedServer.new(folder),
        redis: Support::RedisServer.new(folder), mongo: Support::MongoServer.new(bundle),
        postgresql: Support::PostgreSQL.new(File.join(folder, "pg"))
      }.each_value(&:start)
      Minitest.after_run { shut(servers, folder) }
      servers
    end
  end

  def self.shut(servers, folder)
    servers.each { |name, server| name == :rabbitmq ? server.shut : server.stop }
    FileUtils.rm_rf(folder)
  end

  def test_each_works_in_the_third_generation_with_a_connection_of_its_own
    @config = hooks(ROWS)
    start(ROWS)
    assert_third_generation(ROWS)

    assert_empty @server.events("library.reported")
  end

  # The worker that was forked goes on with what its hooks have closed.
  def test_each_works_in_a_promoted_worker_until_its_successor_is_ready
    go = File.join(@folder, "go")
    @config = <<~RUBY
      #{hooks(ROWS)}
      after_worker_fork { |_, one| sleep 0.01 until one.generation.zero? || File.exist?(#{go.dump}) }
    RUBY
    start(ROWS)
    worker = use_all(ROWS, 0).first["worker"]
    @server.wait_for("mold.ready") { @server.signal("USR2") }
    again = ROWS.map { |row| use(row) }
    FileUtils.touch(go)
    @server.wait_past("refork.finished")

    assert_equal([worker], again.map { |use| use["worker"] }.uniq)
    again.each { |use| assert use["result"]["said"], use.inspect }
    assert_empty troubles
  end

  REFUSED.each do |row|
    define_method("test_a_worker_that_has_used_#{row}_is_not_promoted") do
      start([row])
      assert use(row)["result"]["said"]
      discarded = @server.wait_for("generation.discarded") { @server.signal("USR2") }

      assert_includes discarded["reason"], "#{row}: "
      assert_includes discarded["reason"], advice(row)
      assert use(row)["result"]["said"]
    end
  end

  def test_a_worker_with_an_open_producer_is_not_promoted
    start(%w[waterdrop])
    assert use("waterdrop")["result"]["said"]
    discarded = @server.wait_for("generation.discarded") { @server.signal("USR2") }

    assert_match(/rdkafka: \d+ of its native threads are alive/, discarded["reason"])
    assert use("waterdrop")["result"]["said"]
  end

  private

  def group = "drivers"

  def obstacle
    [Support::RabbitMQServer, Support::MariaDBServer, Support::MemcachedServer, Support::RedisServer,
     Support::PostgreSQL].filter_map(&:obstacle).first
  end

  def prepare
    @servers = self.class.servers(@bundle)
    @servers[:rabbitmq].wait
    @topic = File.basename(@folder)
    %w[karafka waterdrop].each { |row| @servers[:kafka].topic("#{@topic}-#{row}", 1) }
  end

  def environment
    { "APP_RABBITMQ" => @servers[:rabbitmq].url, "KARAFKA_ROOT_DIR" => @folder,
      "APP_KAFKA" => @servers[:kafka].addresses, "APP_TOPIC" => @topic,
      "APP_MARIADB" => @servers[:mariadb].socket_path, "APP_MEMCACHED" => @servers[:memcached].socket_path,
      "APP_REDIS" => @servers[:redis].socket_path, "APP_MONGO" => @servers[:mongo].port.to_s,
      "PGHOST" => @servers[:postgresql].folder, "APP_SQLITE" => File.join(@folder, "said.sqlite3") }
  end

  def config = @config.to_s

  # @return [String] what the rows tell the user to put into the config file
  def hooks(rows)
    lines = rows.flat_map { |row| advice(row).scan(HOOK) } + REFUSED.map { |row| "prepared_library #{row.dump}" }
    lines.join("\n")
  end

  # That of the newest version, or what the note says.
  def advice(row)
    rules = Pando::ForkSafety::Libraries::Known.library(row).rules
    rules.find(&:advice)&.advice || rules.first.note
  end
end
