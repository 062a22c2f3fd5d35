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

  # Characters of a text, and the beginnings that some settings ask for.
  CHARACTERS = [*"\t".."\n", *" ".."~", "é"].freeze
  BEGINNINGS = ["", "/", "GET /", "unix:"].freeze
  NUMBERS = [0, 1, 3, 64, 100, 8192, 16_384, 10**8, 10**13, 2**62, 0.1, 1 / 3.0, 1e-5, 1.1 * 3600, 100 / 3.0].freeze
  OTHERS = [false, true, :auto, :all, :stdout, :refuse, :manual, "80.5%", "systemd", "127.0.0.1:81", "[::1]:82",
            %w[10.0.0.0/8 unix fe80::1%eth0], { requests: 5, seconds: 1 / 3.0, longest: 1e-4 + 7 },
            { bytes: 2**50, milliseconds: 3 }, { allow: ["a gem", "its/path.rb"], otherwise: :report },
            { allow: ["umask"] }].freeze

  # @return [Array] values that the setting takes: texts with every character that it allows, numbers, names
  def values_of(setting)
    texts = BEGINNINGS.flat_map do |beginning|
      allowed = CHARACTERS.select { |one| "#{beginning}a#{one}b".then { takes?(setting, _1) || takes?(setting, [_1]) } }
      text = "#{beginning}a#{allowed.join}b"
      [text, [text], [text, "/", "#{beginning}b"], "#{beginning}a", ["#{beginning}a,b"]]
    end
    [*texts, *NUMBERS, *OTHERS, setting.default].select { |value| takes?(setting, value) }
  end

  def takes?(setting, value)
    setting.cast(value)
  rescue Config::Type::Invalid
    false
  else
    true
  end

  def line_of(setting, value)
    setting.within ? "#{setting.within} #{setting.keyword}: #{value.inspect}" : "#{setting.name}(#{value.inspect})"
  end

  # @return [Array] each value that a config file may set this way, and what is repeated of it
  def repeated(setting)
    values_of(setting).filter_map do |value|
      transcript_of(line_of(setting, value)) do |config, statements, folder|
        assert_equal(["set"], statements.map(&:first), "#{line_of(setting, value)} is not told")
        [value, described(config, setting.name), described(replay(statements, folder), setting.name)]
      end
    rescue Pando::ConfigError
      nil # another setting does not allow it
    end
  end

  def replay(statements, folder)
    Config.replay([], statements, env: {}, dir: folder)
  rescue Pando::ConfigError => e
    flunk("#{statements}: #{e.message}")
  end

  def test_values_survive_whatever_they_contain
    settings = Config::Settings.all.reject(&:flag_only?)
    settings.each do |setting|
      found = repeated(setting)
      refute_empty(found, "no value of #{setting.name} was tried")
      found.each { |value, said, heard| assert_equal(said, heard, "#{setting.name} #{value.inspect}") }
    end
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

  def test_pools_and_nodes_that_are_too_long_for_a_line_are_told
    paths = Array.new(60) { |one| "/reports/number-#{one}" }
    transcript_of("pool :many, paths: #{paths}") do |_, statements, _|
      assert_equal([["whole", { "reason" => "pool many is long" }]], statements)
    end
    queues = Array.new(90) { |one| "a_queue_of_jobs_#{one}" }
    transcript_of("node :sidekiq, queues: #{queues}") do |_, statements, _|
      assert_equal([["whole", { "reason" => "node sidekiq is long" }]], statements)
    end
  end

  # :off is a path here, and "off" none.
  def test_what_only_ruby_can_write_is_told
    ["pidfile :off", "rackup 'caf\u00e9'.encode('ISO-8859-1')", "rackup \"caf\\xE9\".b", "spool :off"].each do |text|
      transcript_of(text) do |_, statements, _|
        assert_match(/\A\w+ has a value that only Ruby can write\z/, statements.last.last["reason"], text)
      end
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
