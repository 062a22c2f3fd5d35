# frozen_string_literal: true

require_relative "../config/config_test_case"
require "open3"
require "pando/compat/notices"

class CompatNoticesTest < ConfigTestCase
  LOCK = "GEM\n  specs:\n    rails (8.1.0)\n    solid_queue (1.2.0)\n      rails (>= 7.1)\n"
  IN_PUMA = { "SOLID_QUEUE_IN_PUMA" => "true" }.freeze

  def test_nothing_to_notice
    assert_empty ignored
    assert_empty ignored("RAILS_MAX_THREADS" => "1", "SOLID_QUEUE_IN_PUMA" => "false", "PIDFILE" => "a.pid")
  end

  STOCK = Dir[File.expand_path("../../fixtures/rails_puma/*.puma", __dir__)].freeze

  def test_the_file_of_a_new_rails_app_is_no_news
    refute_empty STOCK
    rails_app
    STOCK.product(%w[production development]).each do |path, environment|
      write("config/puma.rb", File.read(path))

      assert_empty ignored("RAILS_ENV" => environment), path
      assert_empty ignored("RAILS_ENV" => environment, "PORT" => "80", "PIDFILE" => "a.pid"), path
    end
  end

  def test_each_line_of_puma_that_is_not_followed_is_named_with_the_remedy
    rails_app
    write("config/puma.rb", "port 3000\nplugin :tmp_restart\nif ENV[\"SOME\"]\n  port 1\nend\n\nport 4000\n" \
                            "plugin :statsd\n")

    names, reasons, advice = ignored("RAILS_ENV" => "production").transpose

    assert_equal ["config/puma.rb:4", "config/puma.rb:7", "config/puma.rb:8"], names
    assert_equal ["port 1", "port 4000", "plugin :statsd"].map { |text| "Pando does not read #{text}" }, reasons
    assert_equal "Write listen PORT. pando init writes config/pando.rb from it", advice.first
    write("config/pando.rb", "workers 1")
    assert_empty ignored
  end

  # `pando init` translates only the plugin of Solid Queue.
  def test_each_plugin_of_puma_has_a_remedy_of_its_own
    write("config/puma.rb", "plugin :yabeda\nplugin 'yabeda_prometheus'\nplugin :statsd\nplugin(:solid_queue)\n")
    yabeda, prometheus, other, jobs = ignored.map(&:last)

    assert_match(%r{\AA plugin of Puma: Pando has Prometheus metrics of its own \(docs/metrics\.md\)}, yabeda)
    assert_match(/\AA plugin of Puma: mount Yabeda::Prometheus::Exporter in config\.ru/, prometheus)
    assert_equal "A plugin of Puma, which Pando does not run: what it does belongs in a hook, or in a service " \
                 "beside the workers (docs/services.md).", other
    assert_equal "Write #{Pando::Compat::SolidQueue::LINE}. pando init writes config/pando.rb from it", jobs
    refute_match(/tmp_restart|pando init/, [yabeda, prometheus, other].join)
  end

  def test_a_long_file_of_puma_is_not_a_long_list
    write("config/puma.rb", (1..8).map { |number| "port #{number}\n" }.join)
    found = ignored

    assert_equal 6, found.size
    assert_equal ["config/puma.rb", "Pando does not read lines 6, 7, 8 either",
                  "pando init writes config/pando.rb from it"], found.last
  end

  def test_lines_that_ask_for_what_pando_has_without_them
    rails_app
    ["port 3000", "port ENV.fetch('PORT', 3000)", "port(ENV['PORT'])", "p = ENV['PORT'] || 3000\nport p",
     "bind 'tcp://0.0.0.0:3000?backlog=9'", "bind \"tcp://0.0.0.0:\#{ENV.fetch('PORT') { 3000 }}\"", "workers :auto",
     "workers ENV['WEB_CONCURRENCY']", "workers Etc.nprocessors", "threads 1, 1", "environment 'production'",
     "environment ENV['APP_ENV'] || :development",
     "rackup \"config.ru\"", "fork_worker", "preload_app!", "# port 1", "__END__\nport 1", "plugin 'tmp_restart'",
     "if ENV['SOLID_QUEUE_IN_PUMA']\n  plugin :solid_queue\nend"].each { |text| assert_empty reported(text), text }
  end

  def test_lines_that_ask_for_something_else
    rails_app
    ["port ENV.fetch('PORT', 5000)", "port 3000, '127.0.0.1'", "bind 'unix:///a' if ENV['RAILS_ENV'] == 'production'",
     "bind \"unix:///a/\#{ENV['RAILS_ENV']}\"", "workers ENV.fetch('WEB_CONCURRENCY') { 999 }", "threads 1, 5",
     "workers 999 if ENV['RAILS_ENV'] == 'production'", "environment 'staging'", "fork_worker 1000", "daemonize",
     "before_fork do\n  logger.info 1\n  open(\n    port: 1)\nend", "plugin :solid_queue", "after_worker_fork { 1 }"]
      .each { |text| assert_equal [1], reported(text), text }
  end

  def test_the_lines_of_a_block_of_cluster_are_judged_alone
    assert_equal [2, 3], reported("cluster do\n  workers 999\n  after_worker_shutdown { 1 }\nend\nstate_permission 1\n")
  end

  def test_an_environment_variable_or_a_flag_comes_before_the_file
    rails_app
    variables = { "PORT" => "4000", "WEB_CONCURRENCY" => "998" }
    text = "port ENV.fetch('PORT', 5000)\nworkers ENV.fetch('WEB_CONCURRENCY', 999)\n" \
           "port ENV['PORT'] || 1, '127.0.0.1'\nbind \"tcp://0.0.0.0:\#{ENV['PORT']}\"\n" \
           "port 5000\nworkers 999\nplugin :solid_queue\n"

    assert_equal [3, 5, 6], reported(text, variables.merge(IN_PUMA))
    assert_empty reported("port 5000\nworkers 999\n", {}, %w[-l 4000 -w 2])
  end

  def test_a_line_for_the_environment_with_another_source
    text = "environment ENV.fetch('RAILS_ENV', 'staging')"

    assert_equal [1], reported(text, "RAILS_ENV" => "")
    assert_empty reported(text)
    assert_equal [1], reported("environment ENV['STAGE'] || ENV['RAILS_ENV']")
  end

  # Without the variable no node runs, so only a line that then asks for nothing is followed.
  def test_the_plugin_of_solid_queue_is_followed_only_where_it_depends_on_the_variable_as_in_rails
    rails_app
    variable = "SOLID_QUEUE_IN_PUMA"
    ["plugin :solid_queue if ENV['#{variable}'] # jobs", "plugin('solid_queue') if ENV.fetch(\"#{variable}\", nil)",
     "plugin :solid_queue if ENV['#{variable}'] == 'true'",
     "plugin :solid_queue if ENV.fetch('#{variable}', 'false') == 'true'",
     "if ENV['#{variable}']\n# jobs\n\n  preload_app!\n  plugin :solid_queue\nend"]
      .each { |text| assert_empty reported(text), text }
    ["# #{variable}\nplugin :solid_queue", "plugin :solid_queue # #{variable}",
     "plugin :solid_queue # if ENV['#{variable}']", "plugin :solid_queue # only if ENV['#{variable}'] == 'true'",
     "begin # if ENV['#{variable}']\n  plugin :solid_queue\nend",
     "\nplugin :solid_queue unless ENV['#{variable}'] == 'false'",
     "\nplugin :solid_queue if ENV['#{variable}'] || ENV['RAILS_ENV'] == 'development'",
     "\nplugin :solid_queue if ENV.fetch('#{variable}', 'true') == 'true'",
     "\nplugin :solid_queue if ENV.fetch('#{variable}', 'false')",
     "unless Fizzy.saas? || ENV['#{variable}'] == 'false'\n  plugin :solid_queue\nend",
     "if ENV['#{variable}']; else\n  plugin :solid_queue\nend", "if ENV['#{variable}']\nend\nplugin :solid_queue",
     "if ENV['#{variable}']\nelse\n  plugin :solid_queue\nend"]
      .each { |text| assert_equal [text[/.*plugin/m].count("\n") + 1], reported(text), text }
  end

  def test_the_plugin_of_solid_queue_is_no_news_where_the_variable_decides_or_a_node_runs_the_jobs
    rails_app
    text = "plugin :solid_queue unless ENV['SOLID_QUEUE_IN_PUMA'] == 'false'"

    assert_empty reported(text, IN_PUMA)
    assert_empty reported(text, { "SOLID_QUEUE_IN_PUMA" => "false" })
    ["plugin :solid_queue", "plugin :solid_queue # SOLID_QUEUE_IN_PUMA"]
      .each { |line| assert_equal [1], reported(line, { "SOLID_QUEUE_IN_PUMA" => "false" }), line }
  end

  # The file of Puma is left over, or someone has translated it and lost the jobs.
  def test_a_config_file_without_the_node_of_the_plugin
    rails_app
    write("config/puma.rb", "port 1\nunless Fizzy.saas?\n  plugin :solid_queue\nend\n")
    write("config/pando.rb", "workers 1\n# node :solid_queue\n")

    assert_equal [["config/puma.rb:3", "config/pando.rb has no node for plugin :solid_queue, so Pando runs no jobs",
                   "write #{Pando::Compat::SolidQueue::LINE}; if bin/jobs runs them elsewhere, remove the line, or " \
                   "set SOLID_QUEUE_IN_PUMA=false"]], ignored
    assert_empty ignored("SOLID_QUEUE_IN_PUMA" => "false")
    assert_empty ignored(IN_PUMA)
  end

  def test_a_config_file_that_needs_no_node_for_the_plugin
    rails_app
    puma = "plugin :solid_queue\n"
    node = "node :solid_queue, queue_file: true, require: \"./config/environment.rb\""
    [[puma, node], [puma, "#{node} if ENV['SOME_JOBS']"], [puma, "workers 0\nnode(:own) { Object.new }"],
     ["plugin :solid_queue if ENV['SOLID_QUEUE_IN_PUMA']\n", ""], ["# #{puma}", ""]].each do |puma, pando|
      write("config/puma.rb", puma)
      write("config/pando.rb", pando)

      assert_empty ignored, [puma, pando]
    end
    write("config/puma.rb", puma)
    write("config/pando.rb", "")

    refute_empty ignored
    write("config/swarm.rb", node)
    assert_empty ignored
    File.delete(File.join(@dir, "config/swarm.rb"))
    write("Gemfile.lock", "GEM\n")
    assert_empty ignored
  end

  def test_one_process_is_enough_for_development
    assert_empty reported("workers 3\nthreads 3, 3\n", { "RAILS_ENV" => "development" })
  end

  def test_a_file_of_puma_that_is_no_ruby
    write("config/puma.rb", "port (\xFF\n")

    assert_equal ["config/puma.rb:1"], ignored.map(&:first)
  end

  def test_the_file_of_puma_is_not_run_and_nothing_is_loaded_for_it
    write("config/puma.rb", "File.write(\"ran\", \"\")\nraise \"run\"\nport 4000\n")
    code = "require \"pando/compat/notices\"; require \"pando/config\"\n" \
           "found = Pando::Compat::Notices.new(Pando::Config.load([], dir: ARGV[0])).ignored\n" \
           "puts found.map(&:first), $LOADED_FEATURES.grep(/ripper|translator/)\n"
    output, = Open3.capture2e(RbConfig.ruby, "-Ilib", "-e", code, @dir)

    assert_equal "config/puma.rb:3\n", output
    refute_path_exists File.join(@dir, "ran")
  end

  def test_threads
    assert_empty ignored("RAILS_MAX_THREADS" => "5", "MAX_THREADS" => "5")
    assert_equal [["MAX_THREADS", "Pando does not read it",
                   "set RAILS_MAX_THREADS, or write threads ENV.fetch(\"MAX_THREADS\", 1)"]],
                 ignored("MAX_THREADS" => "5")
    assert_empty reported("threads 2, 4\n", {}, %w[--threads 4])
    assert_equal [1], reported("max_threads 4\n")
  end

  # Pando reads RAILS_MAX_THREADS, and of MAX_THREADS only says that it does not.
  def test_threads_that_max_threads_has_by_default
    ["threads ENV['MIN_THREADS'] || 5, Integer(ENV['MAX_THREADS'] || 30)",
     "min = Integer(ENV['MIN_THREADS'] || 1)\nmax = ENV.fetch('MAX_THREADS', 8).to_i\nthreads min, max",
     "max_threads ENV.fetch('MAX_THREADS') { 8 }", "threads ENV['MIN_THREADS'], 16"]
      .each { |text| assert_equal [text.lines.size], reported(text), text }
    ["threads ENV['MIN_THREADS'] || 1, ENV['MAX_THREADS'] || 1", "threads ENV['MAX_THREADS'], ENV['MAX_THREADS']",
     "min = ENV['RAILS_MIN_THREADS'] || 5\nthreads min, ENV.fetch('RAILS_MAX_THREADS') { 5 }",
     "min_threads ENV['MIN_THREADS']"]
      .each { |text| assert_empty reported(text), text }
  end

  # As Lobsters has it: ten threads in production.
  def test_a_default_of_the_apps_own_is_reported_unless_the_variable_is_set
    source = "count = ENV.fetch('RAILS_MAX_THREADS') {\n  10\n}\nthreads count, count\n" \
             "pidfile ENV.fetch('PIDFILE') do\n  '/srv/app.pid'\nend\n"

    assert_equal [4, 5], reported(source)
    assert_equal [4], reported(source, { "PIDFILE" => "a.pid" })
    assert_empty reported(source, { "PIDFILE" => "a.pid", "RAILS_MAX_THREADS" => "2" })
  end

  def test_max_threads_is_reported_once
    write("config/puma.rb", "threads ENV['MIN_THREADS'] || 5, Integer(ENV['MAX_THREADS'] || 30)")
    names = ->(env) { ignored("RAILS_ENV" => "production", **env).map(&:first) }

    assert_equal %w[MAX_THREADS], names.call("MAX_THREADS" => "5")
    assert_equal %w[config/puma.rb:1], names.call("MAX_THREADS" => "5", "RAILS_MAX_THREADS" => "4")
    assert_empty names.call("MAX_THREADS" => "5", "RAILS_MAX_THREADS" => "5")
  end

  def test_a_line_that_hands_over_the_configuration
    write("config/puma.rb", "require 'govuk_app_config/govuk_puma'\nGovukPuma.configure_rails(self)\n::A::B.set! 1, " \
                            "self # b\n# A.b(self)\nA.b(self.class)\nputs self\nA.b # self\nA.b(1, :self)\n")

    assert_equal [["config/puma.rb:2", "Pando does not read GovukPuma.configure_rails(self)",
                   "Write the settings that it makes. pando init writes config/pando.rb from it"],
                  ["config/puma.rb:3", "Pando does not read ::A::B.set! 1, self # b"]],
                 [ignored.first, ignored[1].first(2)]
    assert_equal 2, ignored.size
  end

  # Its block is for each worker, and has no settings.
  def test_a_hook_that_hands_over_itself_is_reported_as_a_hook
    assert_equal [1], reported("on_worker_boot do\n  A.b(self)\n\n  if 1\n    A.b(self)\n  end\nend\n")
    assert_equal [2, 4], reported("if 1\n  A.b(self)\nend\nbefore_fork do\n  A.b(self)\nend\nif 1\nend\n")
    write("config/puma.rb", "on_worker_boot { A.b(self) }\n")

    assert_equal "Write after_worker_fork { |server, worker| ... }. pando init writes config/pando.rb from it",
                 ignored.dig(0, 2)
  end

  def test_the_default_rackup_file
    ["rackup DefaultRackup", "rackup      DefaultRackup if defined?(DefaultRackup)", "rackup(DefaultRackup)"]
      .each { |text| assert_empty reported(text), text }
    assert_empty reported("rackup DefaultRackup\nrackup 'config.ru'", {}, %w[own.ru])
  end

  def test_solid_queue_becomes_a_node
    rails_app
    events = told(IN_PUMA)

    assert_equal([["setting.followed", "SOLID_QUEUE_IN_PUMA"]], events.map { |event| [event.name, event[:name]] })
    kind = Pando::Config.load([], env: IN_PUMA, dir: @dir).nodes.first
    assert_equal [:solid_queue, "SOLID_QUEUE_IN_PUMA", 1, true], [kind.runner, kind.source, kind.count, kind.shared]
    assert_equal [["#{@dir}/config/environment.rb"], { queue_file: true }], [kind.files, kind.options]
  end

  def test_solid_queue_of_a_config_file_is_the_only_one
    rails_app
    write("config/pando.rb", "node :solid_queue, queues: %w[a], require: \"./config/environment.rb\"")
    nodes = Pando::Config.load([], env: IN_PUMA, dir: @dir).nodes

    assert_equal [["a"]], nodes.map(&:queues)
    assert_empty told(IN_PUMA)
  end

  def test_solid_queue_that_is_not_there
    rails_app
    write("Gemfile.lock", "GEM\n  specs:\n    rails (8.1.0)\n      solid_queue_like (1)\n")

    assert_empty Pando::Config.load([], env: IN_PUMA, dir: @dir).nodes
    assert_equal [["SOLID_QUEUE_IN_PUMA", "no jobs run: the Gemfile.lock does not name solid_queue",
                   "run bundle install, or unset it"]], ignored(IN_PUMA)
  end

  def test_solid_queue_is_off
    rails_app
    ["", "false", "0", "FALSE"].each do |value|
      assert_empty Pando::Config.load([], env: { "SOLID_QUEUE_IN_PUMA" => value }, dir: @dir).nodes, value
    end
  end

  def test_more_threads_than_there_can_be
    advice = "write threads 15 in config/pando.rb, or start fewer workers"
    found = notices({ "RAILS_MAX_THREADS" => "16" }, %w[-w 64]).ignored

    assert_equal [["RAILS_MAX_THREADS", "16 threads in each worker are more than the 1024 of a server: a worker has 15",
                   advice]], found
    assert_equal [["RAILS_MAX_THREADS", "a worker has from 1 to 64 threads, and not 100: it has 64",
                   "write threads 64 in config/pando.rb"]], ignored("RAILS_MAX_THREADS" => "100")
    %w[0 -3].each do |number|
      assert_equal [["RAILS_MAX_THREADS", "a worker has from 1 to 64 threads, and not #{number}: it has 1",
                     "write threads 1 in config/pando.rb"]], ignored("RAILS_MAX_THREADS" => number)
    end
    assert_match(/, and not 100: it has 15\z/, notices({ "RAILS_MAX_THREADS" => "100" }, %w[-w 64]).ignored[0][1])
    assert_empty notices({ "RAILS_MAX_THREADS" => "100" }, %w[--reactor false]).ignored
  end

  def test_a_server_without_workers_leaves_it_alone
    rails_app
    write("config/pando.rb", "workers 0\nnode(:own) { Object.new }")

    assert_equal ["own"], Pando::Config.load([], env: IN_PUMA, dir: @dir).nodes.map(&:name)
    assert_empty ignored(IN_PUMA.merge("RAILS_MAX_THREADS" => "5"))
  end

  def test_a_process_for_each_job_of_resque
    write("config/pando.rb", "workers 0\nnode :resque")
    setting, reason, = ignored("FORK_PER_JOB" => "false").first

    assert_equal "FORK_PER_JOB", setting
    assert_match(/a process of its own/, reason)
    assert_empty ignored("FORK_PER_JOB" => "true")
    write("config/pando.rb", "workers 0\nnode :sidekiq")
    assert_empty ignored("FORK_PER_JOB" => "false")
  end

  def test_the_lock_file_of_another_gemfile
    rails_app
    File.rename(File.join(@dir, "Gemfile.lock"), File.join(@dir, "Other.lock"))
    env = IN_PUMA.merge("BUNDLE_GEMFILE" => File.join(@dir, "Other"))

    assert_equal 1, Pando::Config.load([], env: env, dir: @dir).nodes.size
  end

  private

  def rails_app
    %w[config/environment.rb config/application.rb].each { |file| write(file, "") }
    write("Gemfile.lock", LOCK)
  end

  # @return [Array<Integer>] the numbers of the lines
  def reported(text, env = {}, argv = [])
    write("config/puma.rb", text)
    notices({ "RAILS_ENV" => "production", **env }, argv).ignored.map { |name, _| name[/\d+\z/].to_i }
  end

  def notices(env, argv = []) = Pando::Compat::Notices.new(Pando::Config.load(argv, env: env, dir: @dir), env)
  def ignored(env = {}) = notices(env).ignored

  def told(env)
    events = []
    subscription = Pando::Events.subscribe { |event| events << event }
    notices(env).tell
    events
  ensure
    Pando::Events.unsubscribe(subscription)
  end
end
