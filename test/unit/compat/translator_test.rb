# frozen_string_literal: true

require_relative "translation_test_case"
require "fileutils"
require "json"
require "open3"
require "tmpdir"
require "support/dropped_lines"

class CompatTranslatorTest < TranslationTestCase
  FIXTURES = Dir[File.expand_path("../../fixtures/puma/*.rb", __dir__)].freeze
  # What a deployment sets.
  ENVIRONMENT = { "RAILS_ENV" => "production", "RACK_ENV" => "production", "WEB_CONCURRENCY" => "3", "PORT" => "4000",
                  "SOCKET" => "tmp/web.sock", "PIDFILE" => "tmp/server.pid", "PROXY_PROTOCOL" => "true" }.freeze
  NO_ENVIRONMENT = ENVIRONMENT.transform_values { nil }.freeze
  # Loads each config file that is named in stdin, each with its folder as the application's.
  LOADER = <<~RUBY
    require "json"
    require "pando/config"
    $stdout = $stderr
    answers = JSON.parse($stdin.read).to_h do |path|
      folder = File.expand_path("../..", path)
      config = Pando::Config.load(["-c", path], dir: folder)
      [path, { "listen" => config.listen.map(&:to_s), "workers" => config.workers }]
    rescue Exception => e
      [path, e.message]
    end
    STDOUT.puts JSON.generate(answers)
  RUBY

  def test_there_are_fifty_files
    assert_operator FIXTURES.size, :>=, 50
  end

  def test_no_line_of_any_file_is_dropped
    FIXTURES.each do |path|
      source = File.read(path)

      assert_empty Support::DroppedLines.of(source, translate(source)), path
    end
  end

  def test_a_dropped_line_is_noticed
    assert_equal ["b 2"], Support::DroppedLines.of("a 1\nb 2\nc 3\n", "a 1\nz 3 # was: c 3\n")
    assert_equal ["a 1"], Support::DroppedLines.of("a 1\na 1\n", "# a 1\n")
  end

  def test_each_translation_is_a_config_file_that_pando_takes
    Dir.mktmpdir("pando-compat") do |folder|
      paths = FIXTURES.map { |path| written(folder, path) }

      [NO_ENVIRONMENT, ENVIRONMENT].each do |environment|
        load_all(paths, environment).each { |path, loaded| assert_kind_of Hash, loaded, "#{path}: #{loaded}" }
      end
    end
  end

  def test_what_is_loaded_is_what_was_meant
    Dir.mktmpdir("pando-compat") do |folder|
      paths = %w[socket_or_port elsif_chain zero_by_default modes].map { |name| written(folder, fixture(name)) }
      bare, deployed = [NO_ENVIRONMENT, ENVIRONMENT].map { |environment| load_all(paths, environment).values }

      listening = [bare, deployed].map { |loaded| loaded[0]["listen"] }
      assert_equal [["127.0.0.1:3000"], ["unix:#{folder}/socket_or_port/tmp/web.sock"]], listening
      workers = [bare, deployed].map { |loaded| loaded[2]["workers"] }
      assert_equal [1, 3], workers
      assert_equal([2, 3], [bare, deployed].map { |loaded| loaded[3]["workers"] })
    end
  end

  def test_addresses
    { "port 3000" => listen("3000"), "port ENV['PORT']" => "#{listen("\#{ENV['PORT']}")} if ENV['PORT']",
      "port ENV.fetch('PORT') { 3000 }" => listen("\#{ENV.fetch('PORT') { 3000 }}"),
      "port 80, '::1'" => 'listen "[::1]:80"', "port(x = 3, host)" => nil,
      "bind 'tcp://0.0.0.0:80'" => "listen '0.0.0.0:80'", "bind 'unix:///run/a.sock'" => "listen 'unix:/run/a.sock'",
      "bind 'unix://a.sock?x&mode=0770&backlog=9'" => "listen 'unix:a.sock', backlog: 9, mode: 0o770",
      "bind \"unix://\#{ENV['A']}?umask=0111\"" => "listen \"unix:\#{ENV['A']}\", umask: 0o111",
      "bind ENV['A'] || 'unix:///a.sock?umask=0111'" => "listen ENV['A'] || 'unix:///a.sock?umask=0111'",
      "bind 'tcp://0.0.0.0:80?low_latency=false'" => "listen '0.0.0.0:80', tcp_nodelay: false",
      "bind *ENV['A']" => "listen *ENV['A']", "bind 'ssl://0.0.0.0:443'" => nil,
      "bind_to_activated_sockets" => 'listen "systemd"' }
      .each { |line, expected| assert_translated expected, line }
  end

  def test_options_of_an_address_that_pando_would_not_take
    { "backlog" => nil, "backlog=" => nil, "backlog=9;x" => nil, "backlog=x" => nil, "umask=9" => nil, "mode=x" => nil,
      "tcp_nodelay=9" => nil, "proxy=1" => nil, "backlog=08" => "backlog: 8",
      "umask=0o77" => "umask: 0o77", "low_latency" => "tcp_nodelay: true", "backlog=1&backlog=2" => "backlog: 2" }
      .each do |option, expected|
        *remarks, line = body("bind 'tcp://0.0.0.0:80?#{option}'\n").lines(chomp: true)
        refused = "# pando: Without #{option.inspect}: Pando has no such option or value." unless expected

        assert_equal [refused].compact, remarks
        assert_equal ["listen '0.0.0.0:80'", *expected].join(", "), line.partition(" # was: ").first
      end

    assert_includes translate("bind 'tcp://0.0.0.0:80?a=1\nb'\n"), "# pando: Without \"a=1\\nb\": "
  end

  def test_numbers_of_workers
    { "workers 3" => "workers 3", "workers 0" => "workers 1", "workers ENV['N']" => "workers ENV['N'] if ENV['N']",
      "workers ENV['N'] if ENV.key?('N')" => "workers ENV['N'] if ENV.key?('N')",
      "workers ENV.fetch('N', 0)" => "workers [ENV.fetch('N', 0).to_i, 1].max",
      "workers(ENV.fetch('N') { '0' }.to_i)" => "workers [ENV.fetch('N') { '0' }.to_i, 1].max",
      "workers Integer(ENV['N'] || 0)" => "workers [Integer(ENV['N'] || 0), 1].max",
      "workers Concurrent.physical_processor_count" => "workers Etc.nprocessors",
      "workers ENV.fetch('N', 10)" => "workers ENV.fetch('N', 10)" }
      .each { |line, expected| assert_translated expected, line }
  end

  def test_settings_with_another_name
    { "persistent_timeout 20" => "idle_timeout 20", "first_data_timeout(9)" => "header_timeout 9",
      "worker_shutdown_timeout 4 if ENV['A']" => "stop_timeout 4 if ENV['A']", "idle_timeout 3" => nil,
      "force_shutdown_after :immediately" => nil, "force_shutdown_after 7" => "stop_timeout 7",
      "fork_worker" => "refork :auto", "fork_worker 900" => "refork after: [900]", "early_hints" => "early_hints true",
      "rackup DefaultRackup" => nil, "rackup 'web.ru'" => "rackup 'web.ru'", "threads 1, 2" => "threads 2",
      "max_threads 7" => "threads 7", "threads 100, 100" => "threads 64",
      "threads(n = ENV.fetch('RAILS_MAX_THREADS', 3), n)" => "threads n", "min_threads 1" => nil }
      .each { |line, expected| assert_translated expected, line }
  end

  # Puma's line sets RACK_ENV only. Pando's sets RAILS_ENV too, and would run a production server as development.
  def test_the_environment
    { "environment ENV['RACK_ENV'] || 'development'" => nil,
      "environment ENV.fetch('RAILS_ENV') { 'development' }" => nil,
      "environment(ENV['RAILS_ENV'] || ENV['RACK_ENV'] || :development)" => nil, "environment ENV['APP_ENV']" => nil,
      "environment ENV.fetch('RACK_ENV', 'production')" => "environment ENV.fetch('RACK_ENV', 'production')",
      "environment 'production'" => "environment 'production'",
      "environment ENV['STAGE']" => "environment ENV['STAGE'] if ENV['STAGE']" }
      .each { |line, expected| assert_translated expected, line }

    ["ENV.fetch('RAILS_ENV') { ENV.fetch('DEPLOY_ENV', 'development') }", "ENV['RAILS_ENV'] || ENV['ENVIRONMENT']",
     "ENV['APP_STAGE'] || ENV['RACK_ENV']", "ENV.fetch('RACK_ENV') { File.read('/etc/stage').strip }",
     "ENV.fetch('RAILS_ENV') { 'Staging' }", "'development'"]
      .each { |source| assert_translated "environment #{source}", "environment #{source}" }

    assert_equal "stage = ENV['RACK_ENV']\n# pando: Pando follows RAILS_ENV, RACK_ENV and APP_ENV by itself.\n" \
                 "# environment stage\n", body("stage = ENV['RACK_ENV']\nenvironment stage\n")
  end

  def test_hooks_of_puma
    { "on_worker_boot { |i| A.b(i) }" => "after_worker_fork { |_server, worker, i = worker.slot| A.b(i) }",
      "before_worker_shutdown do A.b end" => "before_worker_exit do A.b end",
      "on_refork { A.b }" => "before_fork { A.b }", "after_worker_fork { A.b }" => nil,
      "on_booted { puts 1 }" => "after_monitor_ready { puts 1 }", "on_booted { Shop.warm }" => nil,
      "before_fork { PumaWorkerKiller.start }" => nil, "before_worker_fork { |i| A.b(i) }" => nil,
      "before_fork { |_server| A.b }" => "before_fork { |_server| A.b }", "on_booted { |_| puts 1 }" =>
        "after_monitor_ready { |_| puts 1 }", "before_fork { |(a, b)| A.c(b) }" => nil,
      "on_worker_boot { |i, data| A.b(i) }" => "after_worker_fork { |_server, worker, i = worker.slot| A.b(i) }",
      "on_worker_boot { |i, data| A.b(data) }" => nil, "on_worker_boot(:a) { |i| A.b(i) }" => nil,
      "after_worker_shutdown { puts 1 }" => "after_worker_exit { puts 1 }",
      "after_worker_shutdown { |_handle| puts 1 }" => "after_worker_exit { |_handle| puts 1 }",
      "after_worker_shutdown { Shop.warm }" => nil, "after_worker_shutdown { |one| puts one.index }" => nil }
      .each { |line, expected| assert_translated expected, line }
  end

  def test_every_setting_of_puma_has_a_reason
    { "rack_url_scheme 'https'" => "Let the proxy send X-Forwarded-Proto, and name it in trusted_proxies.",
      "custom_logger Log.new" => "Write on(\"worker.ready\")",
      "state_permission 0o600" => "Pando has commands of its own",
      "after_refork { Cache.connect }" => "A library that must act after a fork",
      "clear_binds!" => "Remove the listen lines",
      "after_worker_shutdown { |one| puts one }" => "Write after_worker_exit { |server, worker, ending| ... }.",
      "single { workers 0 }" => "The server always has workers." }
      .each { |line, reason| assert_includes body("#{line}\n"), "# pando: #{reason}" }
  end

  # Pando has no other mode, so the lines of the block hold without it.
  def test_the_block_of_cluster_is_opened
    always = "# pando: #{Pando::Compat::Translator::ALWAYS}"

    assert_equal <<~RUBY, body("cluster do # many\n  # two\n  workers 2\n\n  min_threads 1\nend\nworkers 3\n")
      #{always}
      # cluster do # many
        # two
        workers 2

        # pando: All threads are there from the start.
        # min_threads 1
      # end
      workers 3
    RUBY
    assert_equal "if ENV[\"A\"]\n  #{always}\n  # cluster {\n    #{listen(1)} # was: port 1\n  # }\nend\n",
                 body("if ENV[\"A\"]\n  cluster {\n    port 1\n  }\nend\n")
    assert_equal "# was: cluster { workers 4; min_threads 1 } # all\nworkers 4\n# pando: " \
                 "#{Pando::Compat::Names::ALL_THREADS}\n# min_threads 1\n",
                 body("cluster { workers 4; min_threads 1 } # all\n")
  end

  def test_a_block_of_cluster_that_cannot_be_opened
    ["cluster do\n  workers 2\nend if ENV['A']", "cluster do workers 2\n  port 1\nend", "cluster(&b)"].each do |text|
      rows = text.lines.map { |line| "# #{line.chomp}\n" }

      assert_equal ["# pando: #{Pando::Compat::Names.hint("cluster")}\n", *rows], body("#{text}\n").lines
    end
  end

  def test_settings_of_unicorn_and_pitchfork
    { "worker_processes 3" => "workers 3", "timeout 30" => "timeout 30",
      "timeout 30, cleanup: 5" => "timeout 30, grace: 5",
      "listen 8080, tcp_nopush: true, backlog: 9" => "listen 8080, backlog: 9",
      "listen '/run/web.sock', umask: 0o77" => "listen \"unix:/run/web.sock\", umask: 0o77",
      "listen File.join(__dir__, 'a.sock')" => "listen \"unix:\#{File.join(__dir__, 'a.sock')}\"",
      "refork_after [50, 100]" => "refork after: [50, 100]", "refork_max_unavailable 2" => "rollout unavailable: 2",
      "after_fork { |s, worker| A.b(worker.nr) }" => "after_worker_fork { |s, worker| A.b(worker.slot) }",
      "after_worker_fork { |_s, _w| A.b }" => "after_worker_fork { |_s, _w| A.b }",
      "before_fork { |server, worker| server.logger.info(worker.nr) }" => nil, "preload_app true" => nil }
      .each { |line, expected| assert_translated expected, line, name: "config/unicorn.rb" }
  end

  def test_the_plugin_of_solid_queue_becomes_a_node
    node = 'node :solid_queue, queue_file: true, shared: true, require: "./config/environment.rb"'

    assert_translated "#{node} if ENV[\"A\"]", 'plugin :solid_queue if ENV["A"]'
    assert_translated node, "plugin('solid_queue')"
    assert_translated nil, "plugin :tmp_restart"
  end

  # The line would run jobs where the variable is "false".
  def test_the_variable_that_asks_for_solid_queue_is_left_to_pando
    ['ENV["SOLID_QUEUE_IN_PUMA"]', "ENV.fetch('SOLID_QUEUE_IN_PUMA', nil)"].each do |asked|
      assert_translated nil, "plugin :solid_queue if #{asked}"
    end
    node = "  plugin :solid_queue\n"
    source = body("if ENV[\"SOLID_QUEUE_IN_PUMA\"]\n#{node}end\n")

    { "true" => true, "" => false, "False" => false, "0" => false, "off" => false }.each do |value, expected|
      env = { "SOLID_QUEUE_IN_PUMA" => value }
      condition = source[/^if (.*) # was:/, 1].gsub("ENV", "env")

      assert_equal expected, eval(condition, binding), value # rubocop:disable Security/Eval
      assert_equal expected, Pando::Compat::SolidQueue.wanted?(env), value
    end
  end

  def test_a_port_is_everybodys_in_production_only
    Dir.mktmpdir("pando-compat") do |folder|
      path = written(folder, fixture("rails_default"))
      development = NO_ENVIRONMENT.merge("RAILS_ENV" => "development")
      found = [development, ENVIRONMENT].map { |environment| load_all([path], environment).values.first["listen"] }

      assert_equal [["127.0.0.1:3000"], ["0.0.0.0:4000"]], found
    end
  end

  def test_what_needs_the_application_is_left_out_with_a_reason
    { "port Shop.port" => "Shop is not loaded", "workers 2 if Shop.big?" => "Shop is not loaded",
      "x = Rails.application.name" => "Rails is not loaded", "@options[:a] = 1" => "@options is a variable",
      "Other.configure(self)" => "configuration of the server", "frobnicate 3" => "frobnicate is no setting",
      "require_relative 'environment'" => "never loads the application", "trap(:INT) { exit }" => "use a hook" }
      .each do |line, reason|
        text = translate("#{line}\n")

        assert_match(/^# pando: .*#{Regexp.escape(reason)}.*\n# #{Regexp.escape(line)}$/, text)
      end
  end

  def test_what_depends_on_a_line_that_is_left_out_is_left_out
    text = translate("count = Shop.count\nworkers count\ncount = 2\nworkers count\n")

    assert_includes text, "# pando: count is missing: see the line above that was left out.\n# workers count\n"
    assert_includes text, "count = 2\nworkers count\n"
  end

  def test_a_condition_is_kept_with_its_branches
    assert_equal <<~RUBY, body("if ENV[\"A\"] # yes\n  port 1\nelse\n  min_threads 1\nend\n")
      if ENV["A"] # yes
        #{listen(1)} # was: port 1
      else
        # pando: All threads are there from the start.
        # min_threads 1
      end
    RUBY
  end

  def test_a_condition_over_several_lines
    source = "if ENV[\"A\"] && # both\n   ENV[\"B\"]\n  port 1\nelsif [1,\n       2].sum == 3 then\n  port 2\nend\n"

    assert_equal source.gsub(/port (\d)/) { |line| "#{listen(line[-1])} # was: #{line}" }, body(source)
  end

  def test_a_case_with_a_branch_in_its_line
    assert_equal "# pando: workers is a setting within another statement: write it in a line of its own.\n" \
                 "# case ENV[\"A\"]\n# when \"1\" then workers 1\n# else workers 2\n# end\n",
                 body("case ENV[\"A\"]\nwhen \"1\" then workers 1\nelse workers 2\nend\n")
  end

  def test_several_statements_in_a_line
    assert_equal "if ENV[\"A\"]\n  # was: port 1; x = 2; min_threads x\n  #{listen(1)}\n  x = 2\n  # pando: " \
                 "#{Pando::Compat::Names::ALL_THREADS}\n  # min_threads x\nend\n",
                 body("if ENV[\"A\"]\n  port 1; x = 2; min_threads x\nend\n")
  end

  def test_a_condition_that_cannot_be_asked_is_a_comment_as_a_whole
    assert_equal <<~RUBY, body("if Shop.a?\n  port 1 # one\n\n  # two\nend\n")
      # pando: Shop is not loaded when Pando reads its configuration: ask ENV or a file instead.
      # if Shop.a?
      #   port 1 # one
      #
      #   # two
      # end
    RUBY
  end

  def test_comments_of_the_line_stay
    assert_equal "workers 2 # two\n#{listen(3)} # was: port 3 # three\n", body("workers 2 # two\nport 3 # three\n")
  end

  def test_a_file_from_another_folder
    text = Pando::Compat::Translator.new("a = __dir__\nrequire_relative \"../etc\"\n", "config/puma/production.rb",
                                         folder: "puma").call.text

    assert_includes text, 'a = File.expand_path("puma", __dir__) # was: a = __dir__'
    assert_includes text,
                    'require File.expand_path("../etc", File.expand_path("puma", __dir__)) # was: require_'
  end

  def test_a_magic_comment_stays_first
    assert_equal "# frozen_string_literal: true",
                 translate("# frozen_string_literal: true\n\nport 3\n").lines.first.chomp
  end

  def test_texts_are_left_alone
    source = "a = <<~TEXT\n  Rails.env.test?\nTEXT\nb = \"Rails.env\n  c\"\n"

    assert_equal source, body(source)
  end

  def test_an_empty_file
    assert_equal "", body("")
  end

  def test_counts
    result = Pando::Compat::Translator.new("a = 1\n\n# b\nport a\nmin_threads 1\n", "config/puma.rb").call

    assert_equal [1, 1, 1], [result.kept, result.translated, result.left_out]
  end

  def test_what_is_no_ruby
    error = assert_raises(Pando::Compat::Source::Unreadable) { translate("port 3\nworkers (\n") }
    assert_equal "line 2", error.message
  end

  private

  def listen(port) = "listen \"\#{environment == \"development\" ? \"127.0.0.1\" : \"0.0.0.0\"}:#{port}\""
  def fixture(name) = FIXTURES.find { |path| File.basename(path, ".rb") == name }

  def written(folder, path)
    target = File.join(folder, File.basename(path, ".rb"), "config/pando.rb")
    FileUtils.mkdir_p([File.dirname(target), File.join(folder, File.basename(path, ".rb"), "tmp")])
    File.write(target, translate(File.read(path)))
    target
  end

  def load_all(paths, environment)
    library = File.expand_path("../../../lib", __dir__)
    output, status = Open3.capture2({ **environment, "SOLID_QUEUE_IN_PUMA" => nil }, RbConfig.ruby, "-I", library,
                                    "-e", LOADER, stdin_data: JSON.generate(paths))
    assert_predicate status, :success?, output
    JSON.parse(output)
  end
end
