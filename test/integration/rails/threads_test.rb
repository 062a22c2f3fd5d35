# frozen_string_literal: true

require "test_helper"
require "json"
require "support/load"
require "support/rails_app"

# A Rails app whose workers have several requests at once: each request has its own CurrentAttributes, its own
# connection to the database and its own query cache, and runs in Rails' executor; reforks and reloads go on, and the
# pool of connections is large enough or it is said.
class RailsThreadsTest < Minitest::Test
  # More than Rails' database.yml has connections by itself.
  THREADS = 6

  CONTROLLERS = <<~RUBY.freeze
    EXECUTIONS = Concurrent::AtomicFixnum.new
    Rails.application.executor.to_run { EXECUTIONS.increment }
    Rails.application.executor.to_complete { EXECUTIONS.decrement }

    class Current < ActiveSupport::CurrentAttributes
      attribute :number
    end

    class RequestsController < ActionController::Base
      ALL = Concurrent::CyclicBarrier.new(#{THREADS})
      GATE = Queue.new
      around_action :number

      # Each waits for all others, with a connection in its hand. The second query is not sent: it is in the cache.
      def together
        ActiveRecord::Base.connection_pool.with_connection do |connection|
          ALL.wait(60) or raise "the others did not come"
          random = Array.new(2) { connection.select_value("SELECT random()") }
          render json: [Current.number, connection.object_id, connection.pool.size, random]
        end
      end

      # How many requests are in Rails' executor.
      def executor
        render json: EXECUTIONS.value
      end

      def show
        ActiveRecord::Base.connection_pool.with_connection { |connection| connection.select_value("SELECT 1") }
        sleep 0.002
        render plain: "pid \#{Process.pid}"
      end

      def open
        GATE << :open
        head :ok
      end

      private

      def number
        raise "left over: \#{Current.number}" if Current.number

        Current.number = params[:id]
        yield
        raise "not its own: \#{Current.number}" unless Current.number == params[:id]
      end
    end

    class StreamController < ActionController::Base
      include ActionController::Live

      def show
        response.headers["last-modified"] = Time.now.httpdate # so that no middleware waits for the whole
        response.stream.write("one\\n")
        RequestsController::GATE.pop
        response.stream.write("two\\n")
      ensure
        response.stream.close
      end
    end
  RUBY

  ROUTES = <<~RUBY
    Rails.application.routes.draw do
      get "up" => "rails/health#show"
      get "together/:id" => "requests#together"
      get "open" => "requests#open"
      get "executor" => "requests#executor"
      get "stream" => "stream#show"
      get ":id" => "requests#show"
    end
  RUBY

  def teardown
    @server&.kill
    @app&.remove
  end

  def test_requests_at_once
    start("workers 1\nthreads #{THREADS}")
    3.times { assert_each_for_itself }
    assert_streams_beside_other_requests
    wait_until(message: "one request in the executor") { @server.get("/executor").body == "1" }
    assert_empty(@server.events("connections.few"))
  end

  # RAILS_MAX_THREADS is the largest number of threads that a pool has.
  def test_a_pool_with_more_threads_than_the_others
    start("workers 1\nthreads 2\npool :live, paths: [\"/together\"], threads: #{THREADS}")
    assert_each_for_itself
    assert_empty(@server.events("connections.few"))
  end

  def test_reforks_and_reloads_under_load
    start("workers 2\nthreads 5\nrefork :manual")
    load = Support::Load.start(connection, clients: 6)
    3.times do
      load.wait_for_more(100)
      @server.wait_for("reload.finished") { @server.signal("HUP") }
      4.times { load.wait_for_more(50) && @server.refork }
    end
    load.stop

    assert_empty(load.failures)
    assert_empty(@server.complaints)
  end

  def test_a_pool_that_is_too_small_is_reported
    start("workers 1\nthreads #{THREADS}", env: { "RAILS_MAX_THREADS" => "3" })
    few = @server.wait_past("connections.few", name: "primary")

    assert_equal([3, THREADS], few.values_at("connections", "threads"))
    assert_includes(few["advice"], "to #{THREADS} in config/database.yml")
  end

  private

  def start(config, **options)
    @app = Support::RailsApp.create
    # Rails 8 assumes TLS in production, 7.1 redirects to it.
    @app.write("config/environments/production.rb",
               @app.read("config/environments/production.rb").gsub(/config\.(force|assume)_ssl = true/, ""))
    FileUtils.rm(Dir[File.join(@app.folder, "public/*.html")]) # the load asks for /404, too
    @app.write("config/routes.rb", ROUTES)
    @app.write("config/initializers/controllers.rb",
               "Rails.application.config.to_prepare { load Rails.root.join('requests.rb') }\n")
    @app.write("requests.rb", CONTROLLERS)
    @server = @app.serve(environment: "production", config: "rollout canary: false\n#{config}", **options)
  end

  def connection = @server.method(:connect)

  def assert_each_for_itself
    answers = Array.new(THREADS) { |number| Thread.new { @server.get("/together/n#{number}") } }.map(&:value)

    assert_equal([200], answers.map(&:status).uniq)
    numbers, connections, sizes, randoms = answers.map { |answer| JSON.parse(answer.body) }.transpose
    assert_equal(Array.new(THREADS) { |number| "n#{number}" }, numbers)
    assert_equal([THREADS, [THREADS]], [connections.uniq.size, sizes.uniq])
    assert_equal([1], randoms.map { |two| two.uniq.size }.uniq, "the query cache is off")
    assert_empty(randoms.map(&:first).tally.select { |_, times| times > 1 }, "a cache of another request")
    assert_empty(randoms.map(&:first) & (@randoms || []), "the cache of an earlier request")
    @randoms = randoms.map(&:first)
  end

  def assert_streams_beside_other_requests
    client = connection.call
    client.write("GET /stream HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
    nil until client.gets.chomp.end_with?("one")
    assert_equal(200, @server.get("/open").status)

    assert_includes(client.read, "two")
  ensure
    client&.close
  end
end
