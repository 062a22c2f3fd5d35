# frozen_string_literal: true

require_relative "../config/config_test_case"
require "pando/server/app_environment"

class AppEnvironmentTest < ConfigTestCase
  def test_the_application_finds_one_environment_everywhere
    assert_equal %w[production production production], applied({ "RAILS_ENV" => "production", "RACK_ENV" => nil })
    assert_equal %w[staging staging staging], applied({ "RACK_ENV" => nil, "APP_ENV" => "staging" })
    assert_equal %w[test test test], applied({ "RAILS_ENV" => "production", "APP_ENV" => "x" }, argv: %w[-e test])
  end

  def test_an_app_env_that_means_something_else_is_left_alone
    assert_equal %w[production production blue], applied({ "RAILS_ENV" => "production", "APP_ENV" => "blue" })
  end

  def test_a_contradiction_is_said_with_its_remedy
    variables = { "RAILS_ENV" => "production", "RACK_ENV" => "development" }

    assert_equal "RAILS_ENV=production decides, but RACK_ENV=development says otherwise: set both alike, " \
                 "or unset RACK_ENV", environment(variables).contradiction
  end

  def test_nothing_is_said_of_what_agrees_or_is_overruled
    assert_nil environment({ "RAILS_ENV" => "test", "RACK_ENV" => "test", "APP_ENV" => "" }).contradiction
    assert_nil environment({ "RAILS_ENV" => "test", "RACK_ENV" => "x" }, argv: %w[-e production]).contradiction
  end

  # Puma's line of the same name leaves RAILS_ENV as it is.
  def test_a_config_file_that_overrides_rails_env
    variables = { "RAILS_ENV" => "production" }

    assert_equal "config/pando.rb:1 says environment development, and RAILS_ENV=production has no effect: remove " \
                 "the line, or unset RAILS_ENV",
                 environment(variables, config: "environment 'development'").contradiction
    assert_nil environment(variables, config: "environment 'production'").contradiction
    assert_nil environment(variables, config: "environment 'test'", argv: %w[-e development]).contradiction
    assert_nil environment({ "RACK_ENV" => "production" }, config: "environment 'development'").contradiction
  end

  # Rails' own database.yml has that many connections, or 5. The libraries of job nodes read the variable too.
  def test_a_database_gets_a_connection_for_each_thread
    assert_equal "6", connections_with("threads 6")
    assert_equal "3", connections_with("threads 6", "RAILS_MAX_THREADS" => "3")
    ["", "threads 5", "threads 6\nnode :sidekiq, count: 1"].each do |config|
      assert_nil connections_with(config), config
    end
  end

  private

  def environment(variables, argv: [], config: nil)
    config = load_config(config, env: { "RACK_ENV" => nil, **variables }, argv: argv)
    Pando::Server::AppEnvironment.new(config, variables)
  end

  def connections_with(config, variables = {})
    environment(variables, config: config).apply
    variables["RAILS_MAX_THREADS"]
  end

  def applied(variables, argv: [])
    environment(variables, argv: argv).apply
    variables.values_at("RAILS_ENV", "RACK_ENV", "APP_ENV")
  end
end
