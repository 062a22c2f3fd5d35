# frozen_string_literal: true

require_relative "rows_app"
require "support/redis_server"

# Clients that keep connections, and middleware that keeps threads.
class ClientRowsTest < Minitest::Test
  include RowsApp

  ROWS = %w[redis redis-client connection_pool net-http-persistent faraday excon httpx http httparty curb
            aws-sdk-core rack-timeout rack-mini-profiler].freeze
  LIBRARIES = %w[ethon].freeze # beneath the row of typhoeus

  def test_each_works_in_the_third_generation_with_connections_of_its_own
    @config = "before_fork { EASY.close }" # curb's
    start(ROWS)
    earlier = connections(use_all(ROWS, 0))
    uses = third_generation_uses(ROWS)

    uses.each { |use| assert use["result"]["said"], "#{use["row"]}: #{use["result"]}" }
    assert_equal 3, connections(uses).size
    assert_empty connections(uses) & earlier
    assert_empty(@lock.synchronize { @heard }.group_by(&:last).select { |_, heard| speakers(heard).size > 1 })
  end

  def test_rack_mini_profiler_with_files_works_in_the_third_generation
    assert_profiler_works("rack-mini-profiler-with-files")
  end

  def test_rack_mini_profiler_with_a_store_that_the_app_has_made_works_in_the_third_generation
    assert_profiler_works("rack-mini-profiler-with-a-store")
  end

  def test_a_worker_that_has_used_ethon_is_not_promoted
    start(%w[typhoeus])
    assert use("typhoeus")["result"]["said"]
    discarded = @server.wait_for("generation.discarded") { @server.signal("USR2") }

    assert_match(/ethon: In a child of a process that has used it, it raises Ethon::Errors::/, discarded["reason"])
    assert use("typhoeus")["result"]["said"]
  end

  private

  def assert_profiler_works(row)
    start([row])

    assert third_generation_uses([row]).first["result"]["said"]
  end

  def group = "clients"
  def config = @config.to_s
  def obstacle = Support::RedisServer.obstacle

  def prepare
    @heard = [] # words that processes have said, and the sockets on which: a port may be used again
    @lock = Mutex.new
    @redis = Support::RedisServer.new(@folder).start
  end

  def clean_up = @redis&.stop
  def environment = { "APP_REDIS" => @redis.socket_path, "APP_FOLDER" => @folder }
  def connections(uses) = uses.filter_map { |use| use["result"]["connection"] }

  # @return [Array<String>] pids, or what was said while the application was loaded
  def speakers(heard) = heard.map { |word, _| word[/\d+(?=-said\z)/] || word }.uniq

  # Each answer is the last part of the path.
  def answers
    { %r{\A/echo/} => ->(record, socket) { echo(record.path[%r{[^/?]+(?=\?|\z)}], socket) } }
  end

  def echo(word, socket)
    @lock.synchronize { @heard << [word, socket.object_id] }
    socket.write("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: #{word.bytesize}\r\n\r\n#{word}")
    nil
  end
end
