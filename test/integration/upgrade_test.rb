# frozen_string_literal: true

require "test_helper"
require "open3"
require "rbconfig"
require "pando/cli/control_client"
require "support/keep_alive_load"
require "support/pando_versions"
require "support/servers"

# The monitor goes on as another Pando, in the same process, and nobody else notices.
class UpgradeTest < Minitest::Test
  include Support::Servers

  CONFIG = "workers 2\nrefork :manual\ncontrol \"control.sock\"\n"
  MODES = { "behind_the_reactor" => "", "in_direct_mode" => "reactor false\n" }.freeze

  def setup
    @versions = Support::PandoVersions.new.add("1.0.1").link("1.0.1")
  end

  def teardown
    @loads&.each(&:stop)
    super
    @versions.remove
  end

  MODES.each do |name, setting|
    define_method(:"test_nobody_else_notices_#{name}") do
      start("#{setting}service(:clock) { |service| nil until service.wait(60) }\n")
      @server.wait_past("service.ready")
      before = pids
      descriptors = descriptor_kinds
      under_load do
        assert_the_command_upgrades
        size = @server.tree.monitor.pss_kib
        2.times { upgrade }
        wait_until(message: -> { "#{descriptors}, not #{descriptor_kinds}" }) do
          descriptor_kinds == descriptors # the command's own connection may be there for a moment
        end
        assert_operator(@server.tree.monitor.pss_kib, :<, size + 4096, "KiB")
      end
      assert_equal(before, pids)
      assert_equal("pando monitor", @server.tree.monitor.title)
      assert_everything_still_works
    end
  end

  # What is wrong with the other Pando: where, what it is there, and what is said about it.
  FAULTS = [
    ["lib/pando/cluster/monitor.rb", "class Monitor", "raise 'not today'\nclass Monitor", /not today \(RuntimeError\)/],
    ["lib/pando/cluster/protocol.rb", /PROTOCOL = \d+/, "PROTOCOL = 99",
     /speak protocol \d+, and Pando 2\.0\.\d speaks 99: stop and start the server instead/],
    ["lib/pando/cluster/upgrade/document.rb", /FORMAT = \d+/, "FORMAT = 99", /has format 99, not 1/],
    ["lib/pando/cluster/backoff.rb", "failures: :integer", "failures: :flag",
     /has "\d+" for backoff\.failures/],
    ["exe/pando", %r{require "pando/cli"}, "warn 'no key'\nexit!(3)", /before it had read the state/],
    ["lib/pando/cluster/upgrade/resumption.rb", "take_up(monitor)\n",
     "take_up(monitor)\nraise 'too late' unless rehearsal?\n", /too late \(RuntimeError\)/]
  ].freeze

  def test_a_pando_that_cannot_take_over_changes_nothing
    start
    before = pids
    FAULTS.each_with_index do |(file, pattern, text, reason), number|
      version = "2.0.#{number}"
      @versions.add(version).edit(version, file) { |code| code.sub(pattern, text) }.link(version)
      outcome, said = ask("upgrade")

      assert_equal("failed", outcome, file)
      assert_match(reason, said)
    end
    assert_equal(before, pids)
    wait_until(message: "all events") { @server.events("upgrade.failed").size >= FAULTS.size }
    failed = @server.events("upgrade.failed")
    assert_equal(["1.0.1"] * FAULTS.size, failed.map { |event| event["from"] })
    assert_equal([["no key"]], failed.filter_map { |event| event["backtrace"] })
    assert_equal(200, @server.get("/").status)
    assert_equal("3 workers are ready", ask!("scale", workers: 3))
  end

  # A child that dies unobserved is found dead.
  def test_who_dies_meanwhile_is_replaced
    start("service(:clock) { |service| nil until service.wait(60) }\n")
    @server.wait_past("service.ready")
    { "worker" => "worker.ready", "mold" => "generation.current", "reactor" => "reactor.ready",
      "service" => "service.ready" }.each do |role, healed|
      victim = wait_until { @server.tree.titled(role).first }.pid
      seen = @server.events.size
      upgrading = Thread.new { ask("upgrade") }
      await_after(seen, "monitor.upgrading")
      Process.kill("KILL", victim)

      assert_equal("ok", upgrading.value.first)
      await_after(seen, healed)
      refute(@server.tree.children.any? { |child| child.pid == victim }, "#{role} is still there, or its zombie is")
      assert_equal(200, @server.get("/").status)
    end
  end

  def test_what_is_begun_is_brought_to_its_end
    start("timeout 60\n", app: <<~RUBY)
      run lambda { |env|
        hold_until("open") if env["PATH_INFO"] == "/gate"
        [200, {}, [Process.pid.to_s]]
      }
    RUBY
    slow = Thread.new { @server.get("/gate").body }
    @server.wait_until_busy(1)
    leaver = @server.workers.find { |worker| worker.title.end_with?("busy") }.pid
    scaled = Thread.new { ask("scale", workers: 1) }
    @server.wait_past("workers.scaled")
    half = UNIXSocket.new(File.join(@server.folder, "control.sock"))
    half.write("sta")
    upgrade
    half.write("tus\n")
    @server.write("open", "")

    assert_equal(leaver.to_s, slow.value)
    assert_equal(["ok", "1 worker is ready"], scaled.value, "the successor answers an earlier question")
    assert_match(/^server .*\nok\n\z/m, half.read)
    assert_equal(1, @server.workers.size)
    assert_empty(@server.events("worker.lost") + @server.events("worker.killed"))
  end

  # The other image sends them to itself when it has loaded next to nothing of Pando.
  def test_signals_that_come_between_two_monitors_are_obeyed
    start
    @versions.add("1.1.0").edit("1.1.0", "exe/pando") do |code|
      code.sub('require "pando/cli"', <<~'RUBY')
        system("kill -TTIN #{$$}; kill -USR2 #{$$}") if ENV["PANDO_UPGRADE"].to_s.start_with?("take")
        require "pando/cli"
      RUBY
    end.link("1.1.0")
    @server.write("pando.rb", "log_format :json\n#{CONFIG.sub("control.sock", "another.sock")}")
    assert_match(/was touched; these settings differ from the configuration file, run pando reload: control\z/,
                 ask!("upgrade"))

    @server.wait_past("workers.scaled", from: 2, to: 3)
    @server.wait_past("refork.started", "refork.refused")
    assert_predicate(@server.stop, :success?)
  end

  def test_a_touch_of_the_restart_file_between_two_monitors_reloads
    start("restart_file \"restart.txt\"\n")
    @versions.add("1.1.0").edit("1.1.0", "exe/pando") do |code|
      path = File.join(@server.folder, "restart.txt")
      code.sub('require "pando/cli"', <<~RUBY)
        File.write(#{path.dump}, "") if ENV["PANDO_UPGRADE"].to_s.start_with?("take")
        require "pando/cli"
      RUBY
    end.link("1.1.0")
    upgrade

    assert_match(/restart\.txt was touched/, @server.wait_past("reload.started")["reason"])
    @server.wait_past("reload.finished")
  end

  # The reactor goes on with the settings it was started with.
  def test_what_needs_a_restart_is_measured_by_the_reactor_s_start
    start
    @server.write("pando.rb", "log_format :json; rollout canary: false\n#{CONFIG}max_body_bytes 5.gb\n")
    2.times { assert_match(/ touched; a restart is needed for: max_body_bytes\z/, upgrade) }
    assert_match(/; a restart is needed for: max_body_bytes\z/, ask!("reload"))

    @server.wait_for("reactor.ready") { Process.kill("KILL", @server.tree.titled("reactor").first.pid) }
    refute_match(/restart/, upgrade)
    refute_match(/restart/, ask!("reload"))
  end

  def test_it_is_for_the_monitor_alone
    start
    ["take:99", "probe", "x"].each do |value|
      _, said, status = Open3.capture3({ "PANDO_UPGRADE" => value }, RbConfig.ruby, "-I",
                                       File.join(@versions.current, "lib"), File.join(@versions.current, "exe/pando"),
                                       "-C", @server.folder, "-c", "pando.rb", "-l", "127.0.0.1:0")

      refute_predicate(status, :success?, value)
      refute_empty(said)
    end
    assert_equal(200, @server.get("/").status)
  end

  # It follows what is under way, and what is asked for meanwhile follows it.
  def test_with_reforks_and_reloads
    start
    threads = [Thread.new { ask("reload") }, Thread.new { ask("upgrade") }, Thread.new { ask("reload") }]

    assert_equal(%w[ok ok ok], threads.map { |thread| thread.value.first }, @server.output[-3000..])
    refork = @server.wait_for("refork.started") { ask_later("refork") }
    upgrade
    assert_equal(refork["generation"], @server.events("refork.finished").last["generation"])
  end

  private

  def start(setting = "", **options)
    @server = serve(config: CONFIG + setting, code: @versions.current, **options)
  end

  def pids = @server.tree.children.map(&:pid).sort
  # Each version has its own program of the reactor.
  def descriptor_kinds = @server.tree.monitor.descriptor_kinds.transform_keys { |kind| kind[/pando-reactor\z/] || kind }

  # Each time the same Pando takes over from itself.
  def upgrade = ask!("upgrade")

  def assert_the_command_upgrades
    @versions.add("1.0.2").link("1.0.2")
    text, progress, status = Open3.capture3(RbConfig.ruby, "-W0", "-I", File.join(@versions.current, "lib"),
                                            File.join(@versions.current, "exe/pando"), "upgrade", "-c", "pando.rb",
                                            chdir: @server.folder)

    assert_equal("the monitor runs Pando 1.0.2 now, and ran 1.0.1; no other process was touched\n", text, progress)
    assert_match(/monitor\.upgrading from=1\.0\.1 to=1\.0\.2 .*monitor\.upgraded from=1\.0\.1 to=1\.0\.2/m, progress)
    assert_predicate(status, :success?)
  end

  # One keeps its connection, the other posts; the block ends with an answer for each.
  def under_load
    @loads = %w[GET POST].map do |method|
      Support::KeepAliveLoad.start(@server.method(:connect), clients: 1, method: method)
    end
    yield
    @loads.each(&:wait_for_each_client).each(&:stop)
    assert_empty(@loads.flat_map(&:failures).first(5))
  end

  def ask!(word, **pairs)
    outcome, text = ask(word, **pairs)
    assert_equal("ok", outcome, "#{word}: #{text}\n#{@server.output[-3000..]}")
    text
  end

  def ask(word, **pairs)
    outcome, said = Pando::CLI::ControlClient.new(File.join(@server.folder, "control.sock"))
                                             .ask(word, pairs, timeout: 60) { |*| nil }
    [outcome, said["text"] || said["reason"]]
  end

  def ask_later(word) = Thread.new { ask(word) }

  # An event of a name, among those behind the first so many.
  def await_after(seen, name)
    wait_until(message: -> { "#{name}\n#{@server.output[-3000..]}" }) do
      @server.events.drop(seen).find { |event| event["event"] == name }
    end
  end

  def assert_everything_still_works
    @server.wait_for("worker.ready") { Process.kill("KILL", @server.workers.first.pid) }
    @server.refork
    ask!("reload")
    assert_equal("3 workers are ready", ask!("scale", workers: 3))
    assert_equal("the server has stopped", ask!("stop"))
    assert_predicate(@server.wait_for_exit, :success?)
  end
end
