# frozen_string_literal: true

require "test_helper"
require "fileutils"
require "open3"
require "support/servers"

# Another release, without losing a request; one that does not work changes nothing.
class ReloadTest < Minitest::Test
  include Support::Servers

  parallelize_me! # they wait most of the time

  def app(release)
    <<~RUBY
      ANSWER = #{release.inspect}
      run lambda { |env|
        variable = { "/gemfile" => "BUNDLE_GEMFILE", "/lockfile" => "BUNDLE_LOCKFILE" }[env["PATH_INFO"]]
        [200, {}, variable ? [ENV.fetch(variable, "none")] : [ANSWER, " in ", File.basename(Dir.pwd)]]
      }
    RUBY
  end

  # A folder of releases; `current` leads to the first one.
  def deploy(control: ["--control", "../control.sock"], gemfile: nil, lockfile: nil, **options)
    @root = File.realpath(Dir.mktmpdir("pando-releases"))
    options[:env] = { "RUBYOPT" => "-rbundler/setup", "BUNDLE_GEMFILE" => gemfile("one", gemfile) } if gemfile
    options[:env]["BUNDLE_LOCKFILE"] = File.join(@root, "one", lockfile) if lockfile
    release("one", app("one"), options.delete(:config) || "workers 2\nrefork :manual\n")
    link("one")
    @server = serve(arguments: ["-C", File.join(@root, "current"), *control], **options)
  end

  def teardown
    super
    FileUtils.rm_rf(@root) if @root
  end

  def release(name, app, config = "workers 2\nrefork :manual\n")
    folder = File.join(@root, name)
    FileUtils.mkdir_p(folder)
    File.write(File.join(folder, "config.ru"), app)
    File.write(File.join(folder, "pando.rb"), "log_format :json; rollout canary: false\n#{config}")
  end

  # As deployments do it: atomically.
  def link(name)
    File.symlink(name, File.join(@root, "next"))
    File.rename(File.join(@root, "next"), File.join(@root, "current"))
  end

  def body = @server.get("/").body

  def reload(outcome = "reload.finished")
    @server.wait_for(outcome) { @server.signal("HUP") }
  end

  def test_the_link_leads_to_another_release
    deploy
    assert_equal("one in one", body)
    release("two", app("two"))
    link("two")
    reload

    assert_equal("two in two", body)
    assert_empty(@server.events("worker.lost") + @server.events("worker.killed"))
    @server.refork
    assert_equal("two in two", body)
  end

  def test_no_request_is_lost
    deploy
    answers = under_requests(@server) do
      5.times do |number|
        release("r#{number}", app("r#{number}"))
        link("r#{number}")
        reload
      end
    end

    assert_equal([200], answers.uniq)
    assert_equal("r4 in r4", body)
  end

  def test_the_new_configuration_holds
    deploy
    release("two", app("two"), <<~RUBY)
      workers 3
      refork false
      service(:clock) { |service| nil until service.wait(60) }
      on("worker.exited") { |event| File.write("exited", event[:reason]) }
    RUBY
    link("two")
    reload
    @server.wait_past("service.ready", name: "clock")
    @server.wait_past("worker.ready", slot: 2)

    assert_equal("reforking is switched off", @server.wait_for("refork.refused") { @server.signal("USR2") }["reason"])
    worker = @server.workers.find { |process| process.title.include?("gen 1") }
    Process.kill("TERM", worker.pid)
    note = File.join(@root, "two", "exited")
    assert(wait_until { File.exist?(note) && File.read(note) == "TERM" })
  end

  # As deployments without a link do it.
  def test_a_folder_that_was_removed_and_made_anew
    deploy
    FileUtils.rm_rf(File.join(@root, "one"))
    release("one", app("two"))
    reload

    assert_equal("two in one", body)
  end

  def test_the_number_of_workers_stays_what_it_was_made
    deploy
    @server.wait_for("worker.ready", slot: 2) { @server.signal("TTIN") }
    reload

    assert_equal(3, @server.workers.map { |worker| worker.title[/worker (\d)/, 1] }.uniq.size)
  end

  # What goes wrong, and what is said about it.
  FAULTS = {
    "an app that does not boot" => ["raise IOError, 'no disk'", "workers 2", /no disk \(IOError\) at config\.ru:1/],
    "a hook that raises" => ["run ->(_) { [200, {}, []] }", "after_worker_fork { raise IOError, 'no db' }", /no db/],
    "a configuration that is wrong" => ["run ->(_) { [200, {}, []] }", "workrs 2", /pando.rb:2: unknown setting/],
    "a canary that dies" => ["run ->(_) { [200, {}, []] }", "after_worker_fork { exit!(3) }", /status 3/],
    "a configuration that ends its process" => ["", "abort 'no key'", /ends its process: no key/],
    "no rackup file" => [nil, "workers 2", /there is no rackup file/]
  }.freeze

  FAULTS.each do |name, (app, config, reason)|
    define_method(:"test_with_#{name.tr(" ", "_")}_the_old_release_serves_on") do
      deploy
      release("bad", app.to_s, config)
      FileUtils.rm(File.join(@root, "bad", "config.ru")) unless app
      link("bad")
      failed = nil
      answers = under_requests(@server) { failed = reload("reload.failed") }

      assert_match(reason, failed["reason"])
      assert_empty(@server.events("refork.postponed"), "a reload is no refork")
      assert_equal([200], answers.uniq)
      assert_healed_from_the_old_release
    end
  end

  # No flag names the file: Pando has found it.
  def test_without_the_config_file_of_its_start_the_old_release_serves_on
    deploy_without_flag
    release("two", app("two"))
    link("two")
    reason = "there is no config file #{@root}/current/config/pando.rb"

    assert_includes(reload("reload.failed")["reason"], reason)
    assert_includes(pando("upgrade")[1], reason)
    assert_equal("one in one", body)
    name_by_default("two")
    reload
    assert_equal("two in two", body)
  end

  def deploy_without_flag
    @root = File.realpath(Dir.mktmpdir("pando-releases"))
    release("one", app("one"))
    name_by_default("one")
    link("one")
    @server = serve(folder: File.join(@root, "one"),
                    arguments: ["-C", File.join(@root, "current"), "--control", "../control.sock"])
  end

  def name_by_default(release)
    FileUtils.mkdir_p(File.join(@root, release, "config"))
    FileUtils.mv(File.join(@root, release, "pando.rb"), File.join(@root, release, "config"))
  end

  # Not even to read a file of ours that was not needed before.
  def test_without_a_free_descriptor_the_old_release_serves_on
    deploy
    used = Dir.children("/proc/#{@server.pid}/fd").map(&:to_i)
    allow_descriptors(([*0..used.size] - used).first)
    failed = reload("reload.failed")

    assert_match(/cannot load such file|Too many open files/, failed["reason"])
    allow_descriptors(1000)
    assert_healed_from_the_old_release
    reload
  end

  def allow_descriptors(limit) = assert(system("prlimit", "--pid=#{@server.pid}", "--nofile=#{limit}:"))

  # A mold that is lost afterwards comes from the folder that worked.
  def assert_healed_from_the_old_release
    @server.wait_for("generation.current", purpose: "heal") { Process.kill("KILL", old_mold.pid) }
    @server.wait_for("worker.ready") { Process.kill("KILL", @server.workers.first.pid) }
    assert_equal("one in one", body)
  end

  def test_a_lost_mold_is_replaced_from_a_folder_that_was_made_anew
    deploy(config: "workers 2\nrefork false\n")
    FileUtils.rm_rf(File.join(@root, "one"))
    release("one", app("one again"), "workers 2\nrefork false\n")
    @server.wait_for("generation.current") { Process.kill("KILL", @server.mold.pid) }
    @server.wait_for("worker.ready") { Process.kill("KILL", @server.workers.first.pid) }

    assert(wait_until { body == "one again in one" })
  end

  # That of the bad release may still be leaving.
  def old_mold = @server.tree.titled("mold").find { |process| process.title.include?("gen 0") }

  def test_what_needs_a_restart_is_named
    deploy
    release("two", app("two"), "workers 2\nidle_timeout 5\nlisten \"127.0.0.1:0\"\n")
    link("two")
    incomplete = @server.wait_for("reload.incomplete") { @server.signal("HUP") }

    assert_equal("idle_timeout", incomplete["settings"], "the flag -l beats what the file says of listen")
    assert_equal("two in two", body)
  end

  def test_what_needs_a_restart_is_measured_by_the_start
    deploy
    release("two", app("two"), "workers 2\nidle_timeout 5\n")
    link("two")
    assert_equal("idle_timeout", incomplete_reload, "it is still not what it should be")
    assert_match(/ after [\d.]+ s; a restart is needed for: idle_timeout$/, pando("reload").first)
    link("one")
    reload

    assert_equal(2, @server.events("reload.incomplete").size, "it is what it was")
  end

  def incomplete_reload = @server.wait_for("reload.incomplete") { @server.signal("HUP") }["settings"]

  def test_a_second_reload_follows_the_first
    deploy
    release("two", "sleep 0.01 until File.exist?(#{File.join(@root, "go").inspect})\n#{app("two")}")
    link("two")
    @server.wait_for("mold.booting") { @server.signal("HUP") }
    release("three", app("three"))
    link("three")
    @server.signal("HUP")
    File.write(File.join(@root, "go"), "")
    @server.wait_past("reload.finished", generation: 2)

    assert_equal("three in three", body)
  end

  # A link on its path leads elsewhere by now, and a client that follows it must find this server.
  def test_sockets_and_pidfile_in_the_release_folder_move_with_it
    config = "workers 2\nrefork :manual\nlisten \"unix:web.sock\"\ncontrol \"control.sock\"\npidfile \"server.pid\"\n"
    deploy(config: config, listen: false, control: [])
    release("two", app("two"), config)
    link("two")
    _, complaint, status = pando("reload", control: File.join(@root, "one/control.sock"))
    assert_predicate(status, :success?, complaint)

    assert_equal(%w[control.sock web.sock], Dir.glob("*.sock", base: File.join(@root, "two")).sort)
    assert_empty(Dir.glob("*.sock", base: File.join(@root, "one")))
    assert_equal("#{@server.pid}\n", File.read(File.join(@root, "two/server.pid")))
    refute_path_exists(File.join(@root, "one/server.pid"))
    text, = pando("status", control: File.join(@root, "current/control.sock"))
    assert_match(%r{current/web.sock}, text)
    assert_match(/two in two\z/, answer_at(File.join(@root, "current/web.sock")))
  end

  def test_a_configuration_that_hangs_holds_nothing_up
    deploy
    release("bad", app("bad"), "File.write('pid', Process.pid)\nsleep")
    link("bad")
    answers = under_requests(@server) do
      @server.wait_for("reload.started") { @server.signal("HUP") }
      @server.wait_for("worker.ready") { Process.kill("KILL", @server.workers.first.pid) }
      @server.refork
    end
    reader = wait_until { File.read(File.join(@root, "bad", "pid")).to_i.nonzero? rescue nil } # rubocop:disable Style/RescueModifier

    assert_equal([200], answers.uniq)
    assert_match(/called off/, pando("reload", "--cancel").first)
    assert_equal("pando reload --cancel", @server.wait_past("reload.failed")["reason"])
    @server.wait_for("reload.started") { @server.signal("HUP") } # and is ended with the server
    assert_predicate(@server.stop, :success?)
    wait_until { !File.exist?("/proc/#{reader}") || File.read("/proc/#{reader}/stat")[/\) (.)/, 1] == "Z" }
  end

  # What the process says that sets the bundle up, and not only that it has failed.
  def test_bundler_is_heard
    deploy(gemfile: "gem 'rack'")
    release("bad", app("bad"))
    gemfile("bad", "gem 'a-gem-that-nobody-has'")
    link("bad")

    assert_match(/a-gem-that-nobody-has/, reload("reload.failed")["reason"])
    assert_equal("one in one", body)
  end

  def test_a_release_of_another_protocol_is_told_to_upgrade
    deploy(gemfile: "gem 'rack'")
    release("bad", app("bad"))
    gemfile("bad", "gem 'pando', path: 'another'")
    another_pando(File.join(@root, "bad", "another"))
    link("bad")

    assert_match(/\Athe new release has Pando 99.0.0, .* run pando upgrade first\z/, reload("reload.failed")["reason"])
  end

  # With the same protocol it serves under the monitor of before.
  def test_a_release_with_another_pando_runs_that
    deploy(gemfile: "gem 'rack'")
    release("two", "run ->(_env) { [200, {}, [Pando::VERSION]] }")
    gemfile("two", "gem 'rack'\ngem 'pando', path: 'another'")
    folder = File.join(@root, "two", "another")
    another_pando(folder)
    FileUtils.cp_r(File.expand_path("../../lib", __dir__), folder)
    version = File.join(folder, "lib/pando/version.rb")
    File.write(version, File.read(version).sub(/VERSION = .*/, "VERSION = '99.0.0'"))
    link("two")
    reload

    assert_equal("99.0.0", body)
  end

  # Bundler 4 hands its path down.
  def test_a_release_has_a_lock_file_of_its_own
    deploy(gemfile: "gem 'rack'", lockfile: "Gemfile.lock")
    locks = %w[one two].map { |folder| File.join(@root, folder, "Gemfile.lock") }
    written = File.read(locks.first)
    release("two", app("two"))
    gemfile("two", "gem 'rack'\ngem 'minitest'")
    link("two")
    reload

    assert_equal("two in two", body)
    assert_includes(["none", locks.last], @server.get("/lockfile").body)
    assert_equal(written, File.read(locks.first))
  end

  # The Gemfile of before is nowhere by then, for its folder has another name.
  def test_a_release_folder_that_was_renamed
    deploy(gemfile: "gem 'rack'")
    release("two", app("two"))
    gemfile("two", "gem 'rack'")
    File.rename(File.join(@root, "one"), File.join(@root, "gone"))
    link("two")
    reload

    assert_equal("two in two", body)
    assert_equal(File.join(@root, "two", "Gemfile"), @server.get("/gemfile").body)
  end

  def test_the_command_waits_for_the_outcome
    deploy
    release("two", app("two"))
    link("two")
    text, _, status = pando("reload")
    assert_match(/\Aevery worker runs the new release, after [\d.]+ s$/, text)
    assert_predicate(status, :success?)
    release("three", "raise 'not today'")
    link("three")
    _, complaint, status = pando("reload")

    assert_match(/^pando: not today \(RuntimeError\)/, complaint)
    assert_equal(1, status.exitstatus)
  end

  private

  # @return [String] its path
  def gemfile(folder, text)
    FileUtils.mkdir_p(File.join(@root, folder))
    File.join(@root, folder, "Gemfile").tap { |path| File.write(path, "source 'https://rubygems.org'\n#{text}\n") }
  end

  # A gem that only says what it speaks.
  def another_pando(folder)
    FileUtils.mkdir_p(File.join(folder, "lib/pando/cluster"))
    File.write(File.join(folder, "lib/pando/cluster/protocol.rb"), "  PROTOCOL = 99\n")
    File.write(File.join(folder, "pando.gemspec"), <<~RUBY)
      Gem::Specification.new("pando", "99.0.0") { |gem| gem.summary, gem.authors = "another", ["nobody"] }
    RUBY
  end

  def pando(*arguments, control: File.join(@root, "control.sock"))
    Open3.capture3(*Support::Checkout.pando(*arguments, "--control", control))
  end

  def answer_at(path)
    socket = UNIXSocket.new(path)
    socket.write("GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
    socket.read
  ensure
    socket&.close
  end
end
