# frozen_string_literal: true

require "test_helper"
require "tmpdir"
require "pando/cluster"
require "pando/config"
require "pando/server/probed_release"
require_relative "../../../bin/lib/configuration_page"

# What a file says, told line by line and repeated elsewhere, is the same configuration.
class ReplayTest < Minitest::Test
  Config = Pando::Config

  # The example of each setting, as the documentation shows it.
  EXAMPLES = Config::Settings.all.filter_map { |setting| ConfigurationPage.example(setting) }.freeze

  def in_folder(text)
    Dir.mktmpdir do |folder|
      Dir.mkdir(File.join(folder, "config"))
      File.write(File.join(folder, "config", "pando.rb"), text)
      yield File.realpath(folder)
    end
  end

  def transcript_of(text)
    in_folder(text) do |folder|
      config = Config.load([], env: {}, dir: folder)
      lines = Pando::Server::Transcript.of(config)
      yield config, lines.map { |line| Pando::Cluster::Control::Line.decode(line) }, folder
    end
  end

  def assert_same(text)
    transcript_of(text) do |config, statements, folder|
      replayed = Config.replay([], statements, env: {}, dir: folder)
      Config::Settings.all.map(&:name).each do |name|
        assert_equal(described(config, name), described(replayed, name), "#{name} of #{text}")
      end
    end
  end

  def described(config, name)
    value = config.public_send(name)
    [name == :listen ? value.map { |one| [one, one.options] } : value, config.source(name)]
  end

  def test_each_setting
    refute_empty(EXAMPLES)
    EXAMPLES.each { |example| assert_same(example) }
  end

  def test_what_is_switched_off
    assert_same(<<~RUBY)
      refork false
      control false
      trusted_proxies false
      max_body_bytes false
      timeout false
      reactor false
    RUBY
  end

  def test_listeners_and_their_options
    assert_same(<<~RUBY)
      listen "127.0.0.1:81", backlog: 7, tcp_nodelay: false, defer_accept: false, proxy_protocol: true
      listen "unix:a file.sock", mode: 0o612, umask: 0o27
      listen "unix:@name"
      listen "systemd:web", proxy_protocol: true
      listen "systemd"
    RUBY
    assert_same("refork after: [100, 200, false]\nworkers :auto")
  end

  def test_services_have_their_names
    transcript_of("service(:clock) { |one| one }") do |_, statements, folder|
      assert_equal(["clock"], Config.replay([], statements, env: {}, dir: folder).services.keys)
      assert_equal(["service"], statements.map(&:first))
    end
  end

  def test_blocks_that_run_in_the_monitor_are_told
    ["on('worker.ready') { }", "after_worker_exit { }"].each do |text|
      transcript_of(text) { |_, statements, _| assert_equal("whole", statements.last.first) }
    end
    transcript_of("after_worker_fork { }") { |_, statements, _| assert_empty(statements) }
  end

  def test_what_is_too_long_for_a_line_is_told
    transcript_of("trusted_proxies #{Array.new(200) { |one| "10.0.#{one}.0/24" }}") do |_, statements, _|
      assert_equal([["whole", { "reason" => "trusted_proxies is long" }]], statements)
    end
  end

  def test_what_does_not_fit_is_refused
    in_folder("") do |folder|
      statement = ["set", { "name" => "workers", "value" => "many", "source" => "config/pando.rb:1" }]
      error = assert_raises(Pando::ConfigError) { Config.replay([], [statement], env: {}, dir: folder) }
      assert_match(%r{\Aconfig/pando.rb:1: workers must be}, error.message)
    end
  end
end
