# frozen_string_literal: true

require "test_helper"
require "pando/testing"

class TestingSettingsTest < Minitest::Test
  Settings = Pando::Testing::Settings
  Finding = Pando::ForkSafety::Finding

  def test_defaults
    settings = Settings.from({})

    assert_equal [20, false, :error], [settings.every, settings.strict, settings.fail_on]
    assert_equal "config/pando.rb", settings.config_file
  end

  def test_the_environment
    settings = Settings.from("PANDO_REFORK_EVERY" => "50", "PANDO_REFORK_STRICT" => "1",
                             "PANDO_REFORK_FAIL_ON" => "warning")

    assert_equal [50, true, :warning], [settings.every, settings.strict, settings.fail_on]
  end

  # A job on CI is set up by variables, whatever the suite says.
  def test_a_variable_that_is_set_wins_over_the_suite
    settings = Settings.from("PANDO_REFORK_EVERY" => "50", "PANDO_REFORK_STRICT" => "1",
                             "PANDO_REFORK_FAIL_ON" => "warning")
    settings.every = 2
    settings.strict = false
    settings.fail_on = :never

    assert_equal [50, true, :warning], [settings.every, settings.strict, settings.fail_on]
    assert_raises(Pando::ConfigError) { settings.every = "often" }
  end

  def test_what_no_variable_sets_is_the_suites
    settings = Settings.from("PANDO_REFORK_EVERY" => "50")
    settings.strict = true
    settings.fail_on = :never

    assert_equal [50, true, :never], [settings.every, settings.strict, settings.fail_on]
  end

  def test_never
    ["0", "off", "", 0, false, nil].each do |value|
      settings = Settings.new
      settings.every = value

      assert_nil settings.every, value.inspect
    end
  end

  def test_what_is_wrong_is_said
    { "PANDO_REFORK_EVERY" => "often", "PANDO_REFORK_STRICT" => "maybe",
      "PANDO_REFORK_FAIL_ON" => "errors" }.each do |name, value|
      error = assert_raises(Pando::ConfigError) { Settings.from(name => value) }

      assert_includes error.message, name
      assert_includes error.message, value
    end
    assert_raises(Pando::ConfigError) { Settings.from("PANDO_REFORK_EVERY" => "-1") }
  end

  def test_files_of_the_suite
    settings = Settings.new
    theirs = [File.expand_path("test/a_test.rb"), "spec/a_spec.rb", "/gems/rspec-core-3.13.0/lib/rspec/core.rb",
              Support::Checkout.path("lib/pando/testing/session.rb")]

    theirs.each { |path| assert settings.suite?(path), path }
    ["app.rb", "tests/app.rb", "/gems/rack-3.0.0/lib/rack.rb"].each { |path| refute settings.suite?(path), path }
  end

  def test_what_fails_a_run
    warning = Finding.new(:lost_thread, severity: :warning, subject: "thread", message: "lost")
    error = Finding.new(:shared_socket, subject: "socket", message: "shared")
    verdicts = { "error" => [false, true], "warning" => [true, true], "never" => [false, false] }

    verdicts.each do |value, expected|
      settings = Settings.from("PANDO_REFORK_FAIL_ON" => value)

      assert_equal expected, [warning, error].map { |finding| settings.fatal?(finding) }, value
    end
  end
end
