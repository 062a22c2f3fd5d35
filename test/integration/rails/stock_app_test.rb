# frozen_string_literal: true

require "test_helper"
require "pando/config"
require "support/rails_app"

# A fresh `rails new` app with one line of its Gemfile changed.
class StockAppTest < Minitest::Test
  parallelize_me! # they wait half of the time

  # The events of Pando as Rails' notifications. A subscriber may add to their payload.
  PROBE = <<~RUBY
    NOTED = []
    ActiveSupport::Notifications.subscribe(/\\.pando\\z/) do |name, *, payload|
      payload[:noted] = true
      NOTED << name
    end
  RUBY

  ROUTES = <<~RUBY
    Rails.application.routes.draw do
      get "up" => "rails/health#show"
      answer = ->(&text) { ->(_env) { [200, { "content-type" => "text/plain" }, [text.call.to_s]] } }
      get "where" => answer.call { [ENV["RAILS_ENV"], ENV["RACK_ENV"], Rails.env].join(" ") }
      get "generation" => answer.call { Pando.worker_tag[/\\d+\\z/] }
      get "noted" => answer.call { NOTED.join(" ") }
    end
  RUBY

  # Nobody sends the requests for which a canary and those after it would be watched for half a minute.
  SHORT_TRIAL = "rollout canary: { requests: 20, seconds: 1, longest: 2 }"

  def teardown
    @server&.kill
    @app&.remove
  end

  # RAILS_ENV is all that says so.
  def test_production
    start(environment: "production", config: "workers 2\n#{SHORT_TRIAL}", env: { "PIDFILE" => "tmp/web.pid" }) do
      @app.write("config/initializers/tags.rb", "Rails.application.config.log_tags = [->(_) { Pando.worker_tag }]\n")
    end

    assert_equal "production production production", get("/where").body
    assert_equal 2, @server.workers.size
    assert_includes get("/noted").body.split, "audit.finished.pando"
    assert_match(/\[worker [01] gen 0\]/, wait_until { @server.output[%r{^.*Started GET "/where".*$}] })
    assert_equal @server.pid.to_s, @app.read("tmp/web.pid").strip
    restart

    assert_equal "1", get("/generation").body
    assert_predicate @server.stop, :success?
    refute_path_exists File.join(@app.folder, "tmp/web.pid")
  end

  # Nothing of the state of its processes changes while it serves (docs/audit.md).
  def test_reforks
    start(environment: "production", config: "workers 2\nrefork :manual")
    2.times do
      10.times { get("/up") }
      get("/nothing")
      @server.refork
    end

    assert_empty(@server.events("source.changed"))
    assert_empty(@server.events("finding.reported").select { |one| one["kind"] == "changed_state" })
  end

  # A worker that cannot serve Rails' health check does not become ready.
  def test_the_health_check_is_the_self_test
    error = assert_raises(RuntimeError) do
      start(environment: "production") do
        @app.write("config/initializers/up.rb", <<~RUBY)
          Rails.application.config.middleware.insert_before(0, Class.new do
            def initialize(app) = @app = app
            def call(env) = env["PATH_INFO"] == "/up" ? [503, {}, []] : @app.call(env)
          end)
        RUBY
      end
    end

    assert_includes error.message, "the self-test GET /up was answered with 503"
  end

  # The self-check of a booting mold has a deadline for each step, and no part of the app runs within one.
  def test_routes_that_load_slowly
    start(environment: "development", config: "self_check timeout: 1") do
      @app.write("config/routes.rb", "sleep 3\n#{ROUTES}")
    end

    assert_equal "development development development", get("/where").body
  end

  # The routes are asked for the health check without a request, which this constraint needs.
  def test_routes_that_need_a_request
    start(environment: "production", config: "workers 1") do
      @app.write("config/initializers/warden.rb", <<~RUBY)
        Rails.application.config.middleware.use(Class.new do
          def initialize(app) = @app = app
          def call(env) = @app.call(env.merge("warden" => 0))
        end)
      RUBY
      @app.write("config/routes.rb", ROUTES.sub(/^ *get "up"/, <<~'RUBY'.chomp))
        get ":page" => "pages#show", constraints: ->(request) { request.env["warden"].positive? }
        \0
      RUBY
    end
    ignored = @server.events("setting.ignored").find { |event| event["name"] == "self_test" }

    assert_equal 200, get("/up").status
    assert_includes ignored["reason"], "NoMethodError"
  end

  # What docs/hosting.md adds to the deploy.yml that Rails has written.
  def test_kamal_gives_the_server_its_time
    skip "before Rails 8 its apps had no Kamal" if Support::RailsApp::VERSION < "8"
    @app = Support::RailsApp.create
    added = File.read(Support::Checkout.path("docs/hosting.md"))[%r{^```yaml\n(# config/deploy.yml\n.*?)^```}m, 1]
    @app.write("config/deploy.yml", @app.read("config/deploy.yml") + added)
    stop_args = @app.run(Gem.ruby, "-e", <<~RUBY, env: @app.bundled)
      require "kamal"
      config = Kamal::Configuration.create_from(config_file: Pathname("config/deploy.yml"), version: "1")
      print config.role(:web).stop_args.join(" ")
    RUBY

    assert_match(/\A-t "?(\d+)"?\z/, stop_args)
    assert_operator stop_args[/\d+/].to_i, :>=, Pando::Config.load([], file: false).stop_timeout + 2
  end

  # Rackup sets RACK_ENV to development by itself.
  def test_rackup
    start(environment: "production", command: %w[-rbundler/setup -S rackup], arguments: %w[-o unix:pando.sock])

    assert_equal "production production production", get("/where").body
    assert_empty @server.events("environment.contradictory")
  end

  def test_an_api_app_in_development
    start("--api", environment: "development")

    assert_equal "development development development", get("/where").body
    assert_equal 1, @server.workers.size
    assert_predicate @server.stop, :success?
  end

  # The browser is not what is tested here: the test process serves, and a plain client asks.
  def test_system_tests
    @app = Support::RailsApp.create
    @app.write("test/system/up_test.rb", <<~RUBY)
      require "test_helper"
      require "net/http"

      class UpTest < ActionDispatch::SystemTestCase
        driven_by :rack_test

        test "the app is served by the test process" do
          server = Capybara::Server.new(Rails.application).boot
          bodies = Array.new(4) { Thread.new { Net::HTTP.get(URI(server.base_url + "/up")) } }.map(&:value)
          assert_equal 4, bodies.grep(/background-color: green/).size
          assert_same Capybara.servers[:pando], Capybara.server
          visit "/up"
          assert_equal 200, page.status_code
        end
      end
    RUBY

    assert_match(/1 runs, 3 assertions, 0 failures, 0 errors/, @app.rails("test:system", environment: "test"))
  end

  # As RSpec's features and Cucumber do it.
  def test_capybara_without_system_tests
    @app = Support::RailsApp.create
    @app.write("test/features/up_test.rb", <<~RUBY)
      require "test_helper"
      require "capybara/minitest"
      require "net/http"

      class UpTest < ActiveSupport::TestCase
        test "the app is served by the test process" do
          server = Capybara::Server.new(Rails.application).boot
          assert_match(/background-color: green/, Net::HTTP.get(URI(server.base_url + "/up")))
          assert ActionDispatch.autoload?(:SystemTestCase), "it is not loaded"
        end
      end
    RUBY

    assert_match(/1 runs, \d+ assertions, 0 failures, 0 errors/,
                 @app.rails("test", "test/features", environment: "test"))
  end

  private

  def start(*options, environment:, **serve)
    @app = Support::RailsApp.create(*options)
    @app.write("config/initializers/where.rb", PROBE)
    @app.write("config/routes.rb", ROUTES)
    yield if block_given?
    @server = @app.serve(environment: environment, **serve)
  end

  # Rails 8 assumes TLS in production, 7.1 redirects to it.
  def get(path) = @server.get(path, "X-Forwarded-Proto" => "https")

  def restart
    @server.wait_for("reload.finished") { @app.rails("restart", environment: "production") }
  end
end
