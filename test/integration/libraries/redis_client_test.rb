# frozen_string_literal: true

require_relative "library_app"
require "support/redis_server"

# redis-client, alone and in a connection_pool.
class RedisClientTest < Minitest::Test
  include LibraryApp

  LIBRARIES = %w[redis-client].freeze

  def test_each_worker_has_connections_of_its_own
    survive_reforks do |generation|
      expected = connections_of(generation)
      wait_until(message: -> { "connections #{expected}, not #{@redis.connections}" }) do
        (expected - @redis.connections).empty? && @redis.connections.size <= 3 * LibraryApp::WORKERS
      end
    end
    assert_empty verdicts["refused"]
  end

  private

  def app = "redis"
  def obstacle = Support::RedisServer.obstacle
  def prepare = @redis = Support::RedisServer.new(@folder).start
  def clean_up = @redis&.stop
  def environment = { "APP_REDIS" => @redis.socket_path }

  def ask(path, text)
    super.tap do |answer|
      assert_equal text, answer["pooled_echo"]
      own(answer["pooled_connection"], answer["worker"])
    end
  end
end
