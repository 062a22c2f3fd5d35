# frozen_string_literal: true

require_relative "../config/config_test_case"
require "json"
require "minitest/mock"
require "open3"
require "stringio"
require "pando/cli"

# The real executable, in a process of its own.
class CLITest < ConfigTestCase
  ROOT = File.expand_path("../../..", __dir__)
  # Stands in for the server: says what it got and ends as the test wants.
  # Stays in the image that knows the stub.
  SLIM = <<~RUBY
    require "pando/server"
    Pando::Server::ReexecWithoutGems = Module.new { def self.enter(_argv) = yield }
    Pando::Server::Origin = Module.new { def self.note(_folder) = nil }
  RUBY

  SERVER = <<~RUBY
    module Pando
      Server = Struct.new(:config) do
        def prepare = self

        def run
          raise BootError, "the app is broken" if config.environment == "broken"

          puts "serving \#{config.rackup} in \#{Dir.pwd} with \#{config.workers}"
          7
        end
      end
    end
  RUBY

  def test_a_full_disk_behind_the_output
    said, theirs = IO.pipe
    pid = spawn({ "RUBYLIB" => "#{ROOT}/lib" }, RbConfig.ruby, "#{ROOT}/exe/pando", "version",
                out: "/dev/full", err: theirs)
    theirs.close

    assert_match(/\Apando: no space is left for what this command writes: /, said.read)
    assert_equal(1, Process.wait2(pid).last.exitstatus)
  ensure
    said.close
  end

  def test_help
    out, err, status = pando("-h")

    assert_equal ["", 0], [err, status]
    Pando::CLI::COMMANDS.each { |name, known| assert_match(/^  #{name} +#{Regexp.escape(known.help)}$/, out) }
    ["-l, --listen ADDRESS", "-w, --workers N", "--refork auto|manual|off|N,N,...", "-e, --environment ENV",
     "-C, --directory DIR", "-t, --timeout SECONDS", "--log-format text|json", "--check", "-v, --version", "-h, --help",
     "-c, --config FILE", "RACKUP", "PORT", "WEB_CONCURRENCY", "RACK_ENV"].each do |text|
      assert_match(/^ +#{Regexp.escape(text)}(\s|$)/, out)
    end
    assert_operator out.lines.map(&:size).max, :<=, 101
    assert_equal out, pando("help").first
    assert_equal out, pando("config", "--help").first
  end

  def test_version
    expected = ["pando #{Pando::VERSION} (ruby #{RUBY_VERSION} #{RUBY_PLATFORM})\n", "", 0]

    assert_equal expected, pando("-v")
    assert_equal expected, pando("version")
    assert_equal expected, pando("serve", "-w", "2", "--version")
  end

  def test_check
    write("config/pando.rb", "workers 3")
    write("config.ru", "raise 'the rackup file is only looked for'")

    assert_equal ["OK: config/pando.rb, config.ru, 3 workers, 0.0.0.0:80\n", "", 0], pando("--check", "-l", "80")
  end

  def test_check_looks_for_the_folders_of_sockets
    write("config.ru", "")
    write("config/pando.rb", "listen \"unix:run/web.sock\"\ncontrol \"sockets/pando.sock\"")
    output, complaint, status = pando("--check")
    assert_equal ["", 2], [output, status]
    assert_match(%r{\Apando: config/pando.rb:1: listen: there is no folder \S+/run. Create it first$}, complaint)
    FileUtils.mkdir_p(complaint[/no folder (\S+)\. Create/, 1])

    complaint = pando("--check")[1]
    assert_match(%r{config/pando.rb:2: control: there is no folder \S+/sockets}, complaint)
    FileUtils.mkdir_p(complaint[/no folder (\S+)\. Create/, 1])
    assert_equal 0, pando("--check").last
  end

  def test_check_names_settings_without_effect
    write("config.ru", "")
    write("config/pando.rb", "reactor false\nidle_timeout 5\nmax_queue 3")

    assert_equal "note: idle_timeout (config/pando.rb:2) has no effect with reactor false\n" \
                 "note: max_queue (config/pando.rb:3) has no effect with reactor false\n", pando("--check")[1]
  end

  def test_check_without_a_config_file
    write("app.ru", "")

    assert_equal ["OK: no config file, app.ru, 1 worker, 127.0.0.1:8080\n", "", 0], pando("app.ru", "-w1", "--check")
  end

  def test_check_looks_for_what_nodes_need
    write("config.ru", "")
    write("config/pando.rb", "workers 2\nnode(:own, require: './own.rb') { exit! }")
    assert_equal ["", "pando: config/pando.rb:2: node :own require: there is no file #{@dir}/own.rb\n", 2],
                 pando("--check")
    write("own.rb", "exit!")
    assert_equal "OK: config/pando.rb, config.ru, 2 workers, 127.0.0.1:8080, nodes: 1 own\n", pando("--check").first
    assert_equal "OK: config/pando.rb, nodes: 1 own\n", pando("swarm", "--check").first
  end

  def test_check_of_a_gem_that_is_not_there_and_a_file_beside_the_load_path
    write("config/swarm.rb", "node :karafka")
    assert_equal ["", "pando: config/swarm.rb:1: node :karafka needs the gem karafka: add it to the Gemfile " \
                      "(bundle add karafka)\n", 2], pando("swarm", "--check")
    write("config/swarm.rb", "node(:own, require: 'config/swarm.rb') { 1 }")
    assert_match(%r{config/swarm.rb is not in the load path. .* did you mean "./config/swarm.rb"\?$},
                 pando("swarm", "--check")[1])
  end

  def test_a_swarm_takes_no_file_and_no_workers
    write("config/swarm.rb", "node(:own) { 1 }")
    assert_equal ["", "pando: pando swarm takes no argument \"config/jobs.rb\". To name a config file: " \
                      "pando swarm -c FILE\n", 2], pando("swarm", "config/jobs.rb")
    assert_match(/\Apando: --workers: pando swarm has no workers/, pando("swarm", "--workers", "3")[1])
    assert_equal 0, pando("swarm", "--workers", "0", "--check").last
  end

  def test_a_swarm_of_nothing
    assert_equal ["", "pando: there is no config/swarm.rb and no config/pando.rb\n", 2], pando("swarm")
    write("config/pando.rb", "workers 2")
    assert_equal "pando: config/pando.rb has no node line, such as `node :sidekiq`: nothing to run\n",
                 pando("swarm")[1]
  end

  def test_a_wrong_setting_is_one_message_and_status_two
    write("config/pando.rb", "listen 80\nworkes 3")
    expected = ["", "pando: config/pando.rb:2: unknown setting workes. Did you mean workers?\n", 2]

    assert_equal expected, pando
    assert_equal expected, pando("--check")
    assert_equal expected, pando("config")
  end

  def test_a_wrong_flag_is_one_message_and_status_two
    assert_equal ["", "pando: unknown flag --worker. Did you mean --workers? See pando --help.\n", 2],
                 pando("--worker", "3")
    assert_equal ["", "pando: --format: must be text or json, but is \"xml\".\n", 2], pando("config", "--format", "xml")
    assert_equal ["", "pando: --record: must be a whole number from 1 to 1000, but is \"0\".\n", 2],
                 pando("pages", "--record", "0")
    assert_equal ["", "pando: --watch: must be a number of seconds from 0.1 to a year, but is \"0\".\n", 2],
                 pando("status", "--watch", "0")
  end

  def test_letters_beyond_ascii_in_any_locale
    write("caf\u00e9/config.ru", "")
    write("caf\u00e9/config/pando.rb", "listen 'unix:\u00f8.sock'\ncontrol '\u00e6.sock'")
    %w[C C.UTF-8].each do |locale|
      assert_equal ["", 0], pando("-C", "caf\u00e9", "--check", env: { "LC_ALL" => locale }).drop(1)
      assert_includes pando("status", "-C", "caf\u00e9", env: { "LC_ALL" => locale })[1],
                      "no server listens at #{@dir}/caf\u00e9/\u00e6.sock."
      @dir = File.join(@dir, "caf\u00e9")
      assert_equal ["", 0], pando("--check", env: { "LC_ALL" => locale }).drop(1)
      @dir = File.dirname(@dir)
    end
  end

  def test_an_argument_that_is_no_text
    %w[serve scale status].each do |command|
      assert_equal ["", "pando: the argument \"\\xFF\" is not valid UTF-8\n", 2], pando(command, "-C", "\xFF")
    end
  end

  def test_a_number_below_zero_is_no_flag
    assert_equal ["", "pando: pando scale N: must be a whole number, 1 or more, but is \"-1\"\n", 2],
                 pando("scale", "jobs", "-1")
  end

  def test_an_extension_that_is_not_compiled_is_one_message
    missing = LoadError.new("it is not compiled")
    missing.define_singleton_method(:path) { "pando/pando_ext" }
    Pando::CLI.stub(:command, ->(_) { raise missing }) do
      err = StringIO.new
      assert_equal 1, Pando::CLI.run([], err: err)
      assert_equal "pando: it is not compiled\n", err.string
    end
  end

  # Loaded before all else, in each process that is executed in place of the first one as well.
  NOT_COMPILED = <<~RUBY
    Kernel.prepend(Module.new do
      def require(name)
        return super unless name.end_with?("pando_ext")

        raise Class.new(LoadError) { define_method(:path) { name } }, "cannot load such file"
      end
    end)
  RUBY

  def test_a_checkout_that_is_not_compiled_says_so_whatever_the_command
    write("not_compiled.rb", NOT_COMPILED)
    write("config.ru", "run nil")
    %w[serve doctor].each do |command|
      said, status = Open3.capture2e({ "RUBYOPT" => "-r#{@dir}/not_compiled" }, RbConfig.ruby, "-I", "#{ROOT}/lib",
                                     "#{ROOT}/exe/pando", command, chdir: @dir)

      assert_match(/\Apando: cannot load such file.*run bin.compile in the checkout\n\z/, said)
      assert_equal 1, status.exitstatus
    end
  end

  def test_a_rackup_file_that_does_not_exist_is_wrong_usage
    assert_equal ["", "pando: there is no rackup file #{@dir}/config.ru. Name one: pando RACKUP\n", 2], pando
    assert_equal ["", "pando: command line: there is no rackup file #{@dir}/app.ru. Name one: pando RACKUP\n", 2],
                 pando("serve", "app.ru")
  end

  def test_a_mistyped_command
    assert_equal ["", "pando: there is neither a command nor a rackup file confg. Did you mean config?\n", 2],
                 pando("confg")
  end

  def test_a_command_behind_its_flags
    { %w[-C . status] => "status -C .", %w[-C . status --format json] => "status -C . --format json",
      %w[--control a.sock stack 2] => "stack --control a.sock 2" }.each do |arguments, right|
      assert_equal ["", "pando: the command comes first: pando #{right}\n", 2], pando(*arguments)
    end
    assert_match(/command line: there is no rackup file/, pando("serve", "status")[1])
    write("status", "")
    assert_equal 0, pando("-w1", "status", "--check").last
  end

  def test_commands_of_puma
    { "restart" => "pando reload", "phased-restart" => "pando reload", "halt" => "pando stop",
      "stats" => "pando status" }.each do |word, command|
      assert_equal ["", "pando: there is no command #{word}. Write #{command}.\n", 2], pando(word)
    end
    assert_equal "pando: there is no command start. Write pando alone: it serves.\n", pando("-w1", "start")[1]
    write("restart", "")
    assert_equal 0, pando("restart", "--check").last
  end

  def test_help_has_the_flags_of_all_commands
    out, = pando("help")

    %w[--wait --force --undo --how --format --output].each { |flag| assert_match(/^      #{flag}\b/, out) }
    classes = Pando::CLI::COMMANDS.keys.map { |name| Pando::CLI.command(name) }
    classes.select { |command| command.respond_to?(:switches) }.flat_map(&:switches).each do |switch|
      usage = [switch.flags.join(", "), switch.argument].compact.join(" ")
      assert_match(/^ +#{Regexp.escape(usage)}(\s|$)/, out)
    end
    assert_equal 1, out.scan(/^      --wait/).size
  end

  def test_a_server_whose_socket_is_named_can_be_asked_whatever_the_config_file_has_become
    write("config/pando.rb", "no_such_setting 1")
    _, err, status = pando("status")
    assert_equal 2, status
    assert_match(/no_such_setting.*without reading the config file, add --control PATH/m, err)
    _, err, status = pando("status", "--control", "gone.sock")

    assert_equal 2, status
    assert_equal "pando: no server listens at #{@dir}/gone.sock. Is it running, with this `control` setting? " \
                 "To use another socket, add --control PATH\n", err
  end

  def test_a_folder_that_has_no_place_for_the_socket
    _, err, status = pando("status")

    assert_equal 2, status
    assert_includes err, "no folder #{@dir}/tmp for the control socket. Either no server runs in #{@dir}, or it"
    assert_includes err, "write control \"PATH\" into the config file"
  end

  def test_a_link_to_a_release_leads_to_its_socket_only
    write("releases/2/tmp/any", "")
    File.symlink("releases/2", File.join(@dir, "current"))
    _, err, = pando("status", "-C", "current")

    assert_includes err, "#{@dir}/current/tmp is #{File.realpath(@dir)}/releases/2/tmp now; if the link has changed"
  end

  def test_a_file_that_cannot_be_written_is_found_before_the_server_is_asked
    assert_equal ["", "pando: --output: the folder /nowhere does not exist or cannot be written to\n", 2],
                 pando("pages", "--record", "500", "--output", "/nowhere/x", "--control", "gone.sock")
  end

  def test_a_word_too_many
    %w[status reload upgrade drain stop].each do |name|
      assert_equal ["", "pando: unexpected argument \"5\". See pando --help.\n", 2], pando(name, "5")
    end
    assert_equal ["", "pando: unexpected argument \"b\". See pando --help.\n", 2], pando("refork", "a", "b")
    assert_equal ["", "pando: unexpected argument \"5\". See pando --help.\n", 2], pando("scale", "a", "b", "5")
  end

  def test_config_shows_the_settings
    write("config/pando.rb", "workers 3")
    out, err, status = pando("config", "-t", "5", env: { "PORT" => "99" })

    assert_equal ["", 0], [err, status]
    assert_match(%r{^workers 3 +# config/pando.rb:1$}, out)
    assert_match(/^timeout 5 +# -t$/, out)
    assert_match(/^listen "0.0.0.0:99" +# PORT$/, out)
  end

  def test_config_as_json
    out, err, status = pando("config", "--format", "json", "-w", "2")

    assert_equal ["", 0], [err, status]
    assert_equal({ "value" => 2, "unit" => "processes", "source" => "-w" }, JSON.parse(out)["settings"]["workers"])
  end

  def test_serve_runs_the_server_in_the_directory_and_ends_with_its_status
    write("app/config.ru", "")

    assert_equal ["serving #{@dir}/app/config.ru in #{@dir}/app with 2\n", "", 7], pando("-C", "app", "-w", "2")
    assert_equal ["serving #{@dir}/app/config.ru in #{@dir}/app with 2\n", "", 7], pando("serve", "-C", "app", "-w2")
  end

  def test_a_boot_that_fails_is_status_one
    write("config.ru", "")

    assert_equal ["", "pando: the app is broken\n", 1], pando("-e", "broken")
  end

  def test_a_rackup_file_named_like_a_command_can_be_served
    write("help", "")

    assert_equal "serving #{@dir}/help in #{@dir} with 1\n", pando("serve", "help", "-w1").first
  end

  def test_a_reader_that_goes_away_is_no_error
    reader, writer = IO.pipe
    reader.close
    errors = StringIO.new

    assert_equal 0, Pando::CLI.run(["help"], out: writer, err: errors, env: {})
    assert_empty errors.string
    assert_equal 2, Pando::CLI.run(["--no-such-flag"], out: writer, err: writer, env: {})
  ensure
    writer&.close
  end

  def test_settings_are_read_without_rack_json_or_optparse
    script = 'require "pando/cli"; require "pando/config"; Pando::Config.load([])
      puts $LOADED_FEATURES.grep(%r{/(rack|json|optparse|pando_ext|pando/http)[/.]})'
    out, status = Open3.capture2(RbConfig.ruby, "-I", Support::Checkout.path("lib"), "-e", script, chdir: @dir)

    assert_equal ["", true], [out, status.success?]
  end

  private

  def pando(*arguments, env: {})
    write("stub/pando/server.rb", SERVER)
    write("stub/pando/server/reexec_without_gems.rb", SLIM)
    ruby, *rest = Support::Checkout.pando(*arguments)
    # Without this run's bundle, which takes as long to load as all of Pando.
    clean = %w[RUBYOPT PORT WEB_CONCURRENCY RAILS_ENV RACK_ENV APP_ENV].to_h { |name| [name, nil] }
    out, err, status = Open3.capture3(clean.merge(env), ruby, "-w", "-I", "#{@dir}/stub", *rest, chdir: @dir)
    [out, err, status.exitstatus]
  end
end
