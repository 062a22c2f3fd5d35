# frozen_string_literal: true

require "test_helper"
require "pando/config"
require "pando/rack_handler"

class RackHandlerTest < Minitest::Test
  Handler = Pando::RackHandler
  # What `bin/rails server` passes on, less what Pando does not look at.
  RAILS = { server: nil, log_stdout: true, Port: 3000, Host: "localhost", config: "config.ru", pid: "/app/server.pid",
            environment: "development", user_supplied_options: [] }.freeze

  def test_what_rails_users_did_not_choose_is_left_to_pando
    assert_empty Handler.arguments(RAILS)
    assert_equal({ Handler::LOG_TO_STDOUT => "1", "PIDFILE" => "/app/server.pid" }, Handler.environment(RAILS))
  end

  def test_what_they_chose_becomes_flags
    chosen = RAILS.merge(Port: 4000, environment: "test", user_supplied_options: %i[Port environment pid])

    assert_equal %w[--listen 127.0.0.1:4000 -e test --pidfile /app/server.pid], Handler.arguments(chosen)
    refute_includes Handler.environment(chosen), "PIDFILE"
  end

  # Rails does not count it among what its users chose. Without the flag it is nil.
  def test_early_hints
    assert_equal %w[--early-hints true], Handler.arguments(RAILS.merge(early_hints: true))
    assert_equal %w[--early-hints false], Handler.arguments(RAILS.merge(early_hints: false))
    assert_empty Handler.arguments(RAILS.merge(early_hints: nil))
    assert Pando::Config.load(%w[--early-hints true], env: {}).early_hints
  end

  def test_addresses
    assert_equal "0.0.0.0:3000", address("0.0.0.0")
    assert_equal "[::1]:3000", address("::1")
    assert_equal "unix:tmp/web.sock", address("unix://tmp/web.sock")
    assert_equal "tcp://0.0.0.0:3000", address("tcp://0.0.0.0")
    assert_equal "tcp://0.0.0.0:4000", address("tcp://0.0.0.0:4000")
    assert_equal "ssl://0.0.0.0:4000?key=a&cert=b", address("ssl://0.0.0.0:4000?key=a&cert=b")
  end

  def test_another_rackup_file
    assert_equal %w[other.ru], Handler.arguments(RAILS.merge(config: "other.ru"))
  end

  def test_the_log_is_kept_from_the_terminal_on_request
    assert_equal "0", Handler.environment(RAILS.merge(log_stdout: false))[Handler::LOG_TO_STDOUT]
    refute_includes Handler.environment(RAILS.merge(log_stdout: false, environment: "production")),
                    Handler::LOG_TO_STDOUT
  end

  # Rackup's default port is what its users expect.
  def test_all_that_rackup_says_holds
    options = { Host: "localhost", Port: 9292, environment: "development", pid: nil, config: "/app/config.ru" }

    assert_equal %w[--listen 127.0.0.1:9292 /app/config.ru], Handler.arguments(options)
    assert_equal %w[--listen 127.0.0.1:9292 -w 3], Handler.arguments(options.merge(Workers: "3", config: nil))
  end

  # Rackup sets RACK_ENV to development if it is not set, and Rails users set RAILS_ENV.
  def test_the_environment_that_rackup_chose_is_no_contradiction
    options = { environment: "development" }

    assert_equal({ "RACK_ENV" => nil }, rackup_variables(options, rails: "production"))
    assert_empty rackup_variables(options, rails: nil)
    assert_empty rackup_variables(options, rails: "")
    assert_empty rackup_variables({ environment: "staging" }, rails: "production")
    assert_empty rackup_variables(RAILS.merge(pid: nil, log_stdout: false, environment: "test"), rails: "production")
  end

  def test_an_app_that_its_caller_has_made_is_refused
    error = assert_raises(ArgumentError) { Handler.run(:app, app: :app, Port: 9494) }

    assert_match(/\APando cannot serve an app object/, error.message)
  end

  private

  def rackup_variables(options, rails:)
    Handler.environment(options, env: { "RAILS_ENV" => rails }).except(Handler::LOG_TO_STDOUT)
  end

  def address(host) = Handler.arguments(RAILS.merge(Host: host, user_supplied_options: %i[Host])).last
end
