# frozen_string_literal: true

require_relative "config/config_test_case"
require "etc"

class ConfigTest < ConfigTestCase
  def test_defaults_serve_on_the_loopback_interface_with_a_worker_for_each_cpu
    config = load_config

    assert_equal ["127.0.0.1:8080"], config.listen.map(&:to_s)
    assert_equal Pando::Config::CPUs.count, config.workers
    assert_equal :auto, config.refork
    assert_equal File.join(@dir, "config.ru"), config.rackup
    assert_equal({ surge: 1, unavailable: 0 }, config.rollout)
    assert_in_delta 20.0, config.timeout
    assert_in_delta 2.0, config.timeout_grace
    assert_equal 100, config.oom_score_adj
    assert_nil config.config_file
  end

  def test_in_development_there_is_one_worker_that_nothing_interrupts
    config = load_config(env: { "RACK_ENV" => "" })

    assert_equal "development", config.environment
    assert_equal [1, false, false, nil, nil],
                 [config.workers, config.refork, config.rollout_canary, config.timeout, config.queue_timeout]
    assert_equal ["default in development"],
                 %i[workers refork rollout_canary timeout].map { |name| config.source(name) }.uniq
    assert_equal ["127.0.0.1:8080"], config.listen.map(&:to_s)
    assert config.default?(:workers)
  end

  def test_what_is_set_holds_in_development_too
    config = load_config("refork :auto\ntimeout 5", argv: %w[-e test], env: { "WEB_CONCURRENCY" => "3" })

    assert_equal [3, :auto, 5.0, false], [config.workers, config.refork, config.timeout, config.rollout_canary]
    refute config.default?(:workers)
  end

  def test_the_environment_may_be_named_in_the_file
    assert_equal 1, load_config('environment "development"').workers
    assert_equal :auto, load_config('environment "production"', env: { "RACK_ENV" => "" }).refork
  end

  def test_rails_variable_comes_first
    env = { "RAILS_ENV" => "staging", "RACK_ENV" => "production", "APP_ENV" => "other" }

    assert_equal %w[staging RAILS_ENV], environment_and_source(env)
    assert_equal %w[production RACK_ENV], environment_and_source(env.merge("RAILS_ENV" => ""))
    assert_equal %w[other APP_ENV], environment_and_source("RACK_ENV" => "", "APP_ENV" => "other")
  end

  def test_a_rails_app_is_served_where_rails_users_look_for_it
    %w[application environment].each { |name| write("config/#{name}.rb", "") }
    development = load_config(env: { "RACK_ENV" => "development" })
    production = load_config

    assert_equal ["127.0.0.1:3000"], development.listen.map(&:to_s)
    assert_equal ["0.0.0.0:3000"], production.listen.map(&:to_s)
    assert_equal [nil, "GET /up"], [development, production].map(&:self_test)
    assert_equal "default of a Rails app", production.source(:listen)
    assert_equal File.join(@dir, "tmp/restart.txt"), production.restart_file
  end

  def test_every_default_is_what_its_type_would_have_read
    written = Pando::Config::Settings.all.reject { |setting| setting.flag_only? || setting.default == [] || setting.name == :environment }
    written.each do |setting|
      text = setting.type.write(setting.repeatable? ? setting.default.first : setting.default)
      line = setting.within ? "#{setting.within} #{setting.keyword}: #{text}" : "#{setting.name} #{text}"
      config = load_config(line)

      assert_equal [load_config("").public_send(setting.name)], [config.public_send(setting.name)], line
      assert_equal "config/pando.rb:1", config.source(setting.name)
    end
  end

  def test_a_flag_beats_the_file_which_beats_the_environment_which_beats_the_default
    env = { "WEB_CONCURRENCY" => "5" }

    assert_equal [3, "-w"], workers_and_source("workers 4", argv: %w[-w 3], env: env)
    assert_equal [4, "config/pando.rb:1"], workers_and_source("workers 4", env: env)
    assert_equal [5, "WEB_CONCURRENCY"], workers_and_source("", env: env)
    assert_equal "default", load_config("").source(:workers)
  end

  def test_a_variable_that_is_beaten_may_be_wrong
    assert_equal 4, load_config("workers 4", env: { "WEB_CONCURRENCY" => "many" }).workers
  end

  def test_a_variable_that_holds_must_be_right
    assert_equal 'WEB_CONCURRENCY: workers must be a whole number from 0 to 1024, or auto, but is "many".',
                 error_of(env: { "WEB_CONCURRENCY" => "many" })
  end

  def test_no_concurrency_is_one_worker_by_whatever_way_the_variable_comes
    env = { "WEB_CONCURRENCY" => "0" }

    assert_equal [1, "WEB_CONCURRENCY"], workers_and_source("", env: env)
    ["'0'", "0"].each { |value| assert_equal 1, load_config("workers #{value}", env: env).workers }
    node = "workers 0\nnode(:own) { 1 }"
    assert_equal [0, 0], [load_config(node), load_config(node, argv: %w[-w 0], env: env)].map(&:workers)
  end

  def test_an_empty_variable_counts_as_none
    assert_equal "default", load_config(env: { "WEB_CONCURRENCY" => "", "PORT" => "" }).source(:listen)
  end

  def test_port_listens_on_every_address_unless_a_listener_is_configured
    env = { "PORT" => "5000" }

    assert_equal ["0.0.0.0:5000"], load_config(env: env).listen.map(&:to_s)
    assert_equal ["127.0.0.1:1"], load_config('listen "127.0.0.1:1"', env: env).listen.map(&:to_s)
  end

  def test_listeners_of_flags_replace_those_of_the_file
    config = load_config("listen 1\nlisten 2", argv: %w[-l 3 --listen 4])

    assert_equal ["0.0.0.0:3", "0.0.0.0:4"], config.listen.map(&:to_s)
    assert_equal "-l, --listen", config.source(:listen)
    assert_equal "config/pando.rb:1, config/pando.rb:2", load_config.source(:listen)
  end

  def test_an_address_may_be_given_once_only
    assert_equal "config/pando.rb:1, config/pando.rb:2: listen names 0.0.0.0:80 twice",
                 error_of("listen 80\nlisten '*:80', backlog: 5")
  end

  def test_a_relative_socket_path_counts_from_the_directory
    assert_equal "unix:#{@dir}/tmp/a.sock", load_config('listen "unix:tmp/a.sock"').listen.first.to_s
  end

  def test_a_socket_path_that_is_too_long_only_from_the_directory_is_refused
    name = "a" * 100

    assert_equal "config/pando.rb:1: listen: #{@dir}/#{name} is longer than 107 bytes",
                 error_of("listen 'unix:#{name}'")
  end

  def test_directory_comes_before_the_config_file
    FileUtils.mkdir_p(File.join(@dir, "app"))
    write("app/config/pando.rb", "workers 7")
    config = load_config(argv: %w[-C app])

    assert_equal 7, config.workers
    assert_equal File.join(@dir, "app"), config.directory
    assert_equal File.join(@dir, "app/config/pando.rb"), config.config_file
    assert_equal "-C", config.source(:directory)
  end

  def test_a_directory_that_does_not_exist_is_refused
    assert_equal "-C: there is no directory #{@dir}/nowhere", error_of(argv: %w[-C nowhere])
  end

  def test_a_config_file_that_was_named_must_exist
    assert_equal "-c: there is no config file #{@dir}/nowhere.rb", error_of(argv: %w[-c nowhere.rb])
  end

  def test_a_config_file_that_is_a_directory_is_refused
    assert_match(/\A#{@dir}: cannot be read: Is a directory/, error_of(argv: ["-c", @dir]))
  end

  def test_the_file_runs_in_the_directory
    FileUtils.mkdir_p(File.join(@dir, "app"))
    write("app/count", "6")
    write("app/config/pando.rb", 'workers File.read("count")')
    before = Dir.pwd

    assert_equal 6, load_config(argv: %w[-C app]).workers
    assert_equal before, Dir.pwd
  end

  def test_its_argv_loads_the_same_again_from_elsewhere
    FileUtils.mkdir_p(File.join(@dir, "app"))
    config = load_config(argv: %w[-C app -w3 --refork=5,off -l 80 -l unix:x -- -odd.ru])
    again = Pando::Config.load(config.argv, env: { "RACK_ENV" => "production" }, dir: "/")

    assert_equal config.argv, again.argv
    assert_equal ["-C", "#{@dir}/app", "-w", "3", "--refork", "5,off", "-l", "80", "-l", "unix:x", "--", "-odd.ru"],
                 config.argv
    Pando::Config::Settings.all.each do |setting|
      assert_equal [config.public_send(setting.name)], [again.public_send(setting.name)]
    end
  end

  # A reload must not take a release without the file for one with the defaults.
  def test_its_argv_names_the_file_that_was_found
    config = load_config("workers 3", argv: %w[-w 2 app.ru])

    assert_equal ["-C", @dir, "-w", "2", "-c", "config/pando.rb", "app.ru"], config.argv
    assert_equal config.argv, Pando::Config.load(config.argv, env: {}, dir: "/").argv
    File.unlink(config.config_file)

    # The user has typed no -c.
    assert_equal "there is no config file #{@dir}/config/pando.rb", error_of(argv: config.argv)
  end

  def test_its_argv_takes_the_first_file_that_appears_later
    before = load_config
    write("config/pando.rb", "workers 3")
    after = load_config(argv: before.argv)

    assert_equal ["-C", @dir], before.argv
    assert_equal [3, ["-C", @dir, "-c", "config/pando.rb"]], [after.workers, after.argv]
  end

  def test_a_directory_keeps_its_symbolic_link
    FileUtils.mkdir_p(File.join(@dir, "releases/1"))
    File.symlink("releases/1", File.join(@dir, "current"))

    assert_equal File.join(@dir, "current"), load_config(argv: %w[-C current]).directory
  end

  def test_surge_and_unavailable_cannot_both_be_zero
    assert_equal "config/pando.rb:1: rollout surge: cannot be 0 while unavailable: is 0", error_of("rollout surge: 0")
    assert_equal({ surge: 0, unavailable: 1 }, load_config("rollout surge: 0, unavailable: 1").rollout)
  end

  def test_the_rackup_file_must_exist_when_it_is_required
    config = load_config("rackup 'app.ru'")
    error = assert_raises(Pando::ConfigError) { config.require_rackup }
    write("app.ru", "")

    assert_equal "config/pando.rb:1: there is no rackup file #{@dir}/app.ru. Name one: pando RACKUP", error.message
    assert_equal "#{@dir}/app.ru", config.require_rackup
  end

  def test_the_example_loads
    config = load_config(argv: ["-c", Support::Checkout.path("examples/config/pando.rb")])

    assert_equal [4, { after: [50, 500, false] }], [config.workers, config.refork]
  end

  def test_it_is_frozen_and_made_by_load_only
    assert_predicate load_config, :frozen?
    assert_raises(NoMethodError) { Pando::Config.new(nil) }
  end

  private

  def environment_and_source(env)
    config = load_config(env: env)
    [config.environment, config.source(:environment)]
  end

  def workers_and_source(text, **rest)
    config = load_config(text, **rest)
    [config.workers, config.source(:workers)]
  end
end
