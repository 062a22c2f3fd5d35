# frozen_string_literal: true

require "test_helper"
require "tmpdir"
require "fileutils"
require "pando/config"

# A directory of its own for each test, in which config files are written and loaded.
class ConfigTestCase < Minitest::Test
  def setup
    @dir = File.realpath(Dir.mktmpdir("pando-config"))
  end

  def teardown
    FileUtils.remove_entry(@dir)
  end

  def write(name, text)
    path = File.join(@dir, name)
    FileUtils.mkdir_p(File.dirname(path))
    File.write(path, text)
    path
  end

  # In production, where most defaults are the usual ones.
  #
  # @param text [String, nil] of config/pando.rb
  def load_config(text = nil, argv: [], env: {})
    write("config/pando.rb", text) if text
    Pando::Config.load(argv, env: { "RACK_ENV" => "production", **env }, dir: @dir)
  end

  # @return [String] the message of the error that loading raises
  def error_of(text = nil, **rest)
    assert_raises(Pando::ConfigError, Pando::UsageError) { load_config(text, **rest) }.message
  end
end
