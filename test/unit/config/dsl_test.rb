# frozen_string_literal: true

require_relative "config_test_case"

# A constant that Pando has too: the config file must see the application's.
module Settings
  NAME = "of_the_application"
end

class DSLTest < ConfigTestCase
  def test_each_setting_of_a_file_is_a_method
    config = load_config(<<~RUBY)
      listen "0.0.0.0:8080", backlog: 64, defer_accept: false
      listen "unix:pando.sock", mode: "0660", umask: 0o077
      workers 4
      refork after: [500, 750, false]
      timeout 20, grace: 3
      rollout unavailable: 2
      oom_score_adj false
      environment :production
      log_format "json"
      max_body_bytes "10MB"
    RUBY

    assert_equal [[64, nil, true], [0o660, 0o077]],
                 [config.listen[0].then { |tcp| [tcp.backlog, tcp.defer_accept, tcp.tcp_nodelay] },
                  config.listen[1].then { |unix| [unix.mode, unix.umask] }]
    assert_equal([4, { after: [500, 750, false] }, 20.0, 3.0, nil, "production", :json, 10 * 1024 * 1024],
                 %i[workers refork timeout timeout_grace oom_score_adj environment log_format max_body_bytes]
                   .map { |name| config.public_send(name) })
    assert_equal({ surge: 1, unavailable: 2 }, config.rollout)
  end

  # As in Puma's `bind`.
  def test_an_address_may_carry_its_options_as_a_query
    folder = File.join(@dir, "what?")
    addresses = ["unix://#{folder}/tmp/a.sock?umask=0111&backlog=9", "unix:tmp/b.sock?mode=0660",
                 "tcp://0.0.0.0:81?low_latency=false&backlog=7", "tcp://[::1]:82?low_latency", "unix:@a?backlog=5"]
    config = load_config("#{addresses.map { |one| "listen #{one.inspect}\n" }.join}" \
                         "listen 'unix:c.sock?mode=0770&backlog=3', mode: 0o600\n" \
                         "admin 'unix:d.sock?mode=0606'")

    read = config.listen.map { |one| [one.to_s, one.backlog, one.mode, one.umask, one.tcp_nodelay] }
    assert_equal [["unix:#{folder}/tmp/a.sock", 9, nil, 0o111, true],
                  ["unix:#{@dir}/tmp/b.sock", 1024, 0o660, nil, true], ["0.0.0.0:81", 7, nil, nil, false],
                  ["[::1]:82", 1024, nil, nil, true], ["unix:@a", 5, nil, nil, true],
                  ["unix:#{@dir}/c.sock", 3, 0o600, nil, true]], read
    assert_equal 0o606, config.admin.first.mode
    assert_equal 9, load_config(argv: ["-l", "tcp://0.0.0.0:81?backlog=9"]).listen.first.backlog
  end

  def test_units_work_in_the_file_and_nowhere_else
    config = load_config("body_memory 1.5.mb\nboot_timeout 2.minutes\nspawn_timeout 500.milliseconds")

    assert_equal [1_572_864, 120.0, 0.5], [config.body_memory, config.boot_timeout, config.spawn_timeout]
    refute_respond_to 1, :mb
    assert_raises(NoMethodError) { 1.minutes }
  end

  def test_a_keyword_alone_leaves_the_value_alone
    config = load_config("timeout grace: 9")

    assert_equal [20.0, "default", 9.0, "config/pando.rb:1"],
                 [config.timeout, config.source(:timeout), config.timeout_grace, config.source(:timeout_grace)]
  end

  def test_the_last_mention_of_a_setting_holds
    assert_equal "config/pando.rb:2", load_config("workers 1\nworkers 2").source(:workers)
  end

  def test_the_file_may_ask_for_the_environment
    text = "workers(environment == 'production' ? 8 : 2)"

    assert_equal 2, load_config(text, env: { "RACK_ENV" => "" }).workers
    assert_equal 8, load_config(text, env: { "RACK_ENV" => "production" }).workers
    assert_equal 8, load_config(text, argv: %w[-e production]).workers
    assert_equal 8, load_config("environment 'production'\n#{text}").workers
  end

  def test_the_files_constants_are_the_applications
    assert_equal "of_the_application", load_config("environment Settings::NAME").environment
  end

  def test_methods_of_one_file_are_unknown_to_the_next
    assert_equal 3, load_config("def count = 3\nworkers count").workers
    assert_match(/unknown setting count\b/, error_of("workers count"))
  end

  def test_a_file_is_utf8_whatever_the_locale
    previous = Encoding.default_external
    silently { Encoding.default_external = Encoding::US_ASCII }

    assert_equal "#{@dir}/grün.ru", load_config("rackup 'grün.ru'").rackup
  ensure
    silently { Encoding.default_external = previous }
  end

  def test_hooks_run_in_the_order_of_the_file
    config = load_config(<<~RUBY)
      after_worker_fork { |server, worker| server << [1, worker] }
      after_worker_fork { |server| server << [2] }
    RUBY
    config.hooks.run(:after_worker_fork, calls = [], :worker)

    assert_equal [[1, :worker], [2]], calls
  end

  def test_a_hook_may_have_the_name_of_a_setting
    config = load_config("self_check timeout: 2\nself_check { |server| server << 1 }")

    assert_equal [true, 2.0], [config.self_check, config.self_check_timeout]
    config.hooks.run(:self_check, calls = [])
    assert_equal [1], calls
    both = load_config("self_check(timeout: 3) { |server| server << 2 }")
    both.hooks.run(:self_check, calls)
    assert_equal [3.0, [1, 2]], [both.self_check_timeout, calls]
    assert_match(/workers takes no block/, error_of("workers(2) { 3 }"))
  end

  def test_every_hook_has_a_method
    text = Pando::Hooks::NAMES.map { |name| "#{name} { raise '#{name}' }" }.join("\n")
    hooks = load_config(text).hooks

    Pando::Hooks::NAMES.each.with_index(1) do |name, line|
      error = assert_raises(Pando::HookError) { hooks.run(name) }

      assert_equal ["#{@dir}/config/pando.rb:#{line}", name.name], [error.location, error.cause.message]
    end
  end

  def test_services_and_subscriptions_are_kept_with_their_blocks
    config = load_config("service(:mailer) { 42 }\non(:worker_ready) { 43 }\non('worker.ready') { 44 }")

    assert_equal [:mailer, 42], config.services.map { |name, block| [name, block.call] }.flatten
    assert_equal([["worker.ready", 43, "config/pando.rb:2"], ["worker.ready", 44, "config/pando.rb:3"]],
                 config.subscriptions.map { |one| [one.name, one.block.call, one.source] })
  end

  private

  def silently
    verbose = $VERBOSE
    $VERBOSE = nil
    yield
  ensure
    $VERBOSE = verbose
  end
end
