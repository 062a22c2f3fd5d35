# frozen_string_literal: true

require "test_helper"
require "open3"
require "timeout"
require "fileutils"
require "tmpdir"
require "support/screen_text"
require "support/servers"
require "support/terminal_session"

# The real `pando top`, at a terminal and without one, watches a real server and steers it.
class TopTest < Minitest::Test
  include Support::Servers
  include Support::Waiting

  PATIENCE = 20
  # A shell that stays on the terminal afterwards tells what state it is in.
  AFTER = 'trap : INT TERM; "$@"; echo "status=$?"; stty -a; echo "end""ed"'
  WHOLE_SCREEN = "\e[?1049h"
  BACK = "\e[?1049l"

  def setup
    require "curses"
    @folder = Dir.mktmpdir("pando-top") # the server's own goes with it
    @server = serve(config: "workers 2\nrefork :manual\nhealth \"/up\"\ncontrol #{socket.inspect}")
  rescue LoadError
    skip("the gem curses is not installed")
  end

  def teardown
    @session&.close
    super
    FileUtils.remove_entry(@folder) if @folder
  end

  def test_it_shows_the_workers_and_gives_the_terminal_back
    watch
    refute_includes(@session.bytes, BACK)
    @session.type("q")

    assert_restored(0)
  end

  def test_a_refork
    watch
    @server.wait_for("refork.finished") { @session.type("r") }
    see(/^refork: every worker runs generation 1/)
  end

  def test_a_kill_is_confirmed_first
    watch
    victim = @server.workers.find { |worker| worker.title.include?("worker 0") }.pid
    @session.type("jjjK")
    see(/^Kill worker 0 \(pid #{victim}\)\? \(y.n\)/)
    @session.type("n")
    see(/^kill: not done/)

    assert_path_exists("/proc/#{victim}")
    assert_empty(@server.events("worker.killed"))
    @session.type("K")
    see(/^Kill worker 0/)
    event = @server.wait_for("worker.killed") { @session.type("y") }

    assert_equal([victim, "pando kill: signal KILL"], event.values_at("pid", "reason"))
    see(/^kill: the worker in slot 0 \(pid #{victim}\) was killed/)
    see(/^worker 0 +0 +(?!#{victim})\d+ idle/)
  end

  def test_scale_and_drain
    watch
    @session.type("+")
    see(/^scale: 3 workers are ready/)
    @session.type("dy")
    see(/^drain: no more requests arrive/)
    @session.type("d")
    see(/back into rotation\? \(y.n\)/)
    @session.type("y")
    see(/the server is in rotation again/)
  end

  def test_signals_give_the_terminal_back
    %w[TERM INT HUP].each do |name|
      watch
      Process.kill(name, top_pid)
      assert_restored(name == "INT" ? 130 : 128 + Signal.list[name])
      @session.close
    end
  end

  def test_it_follows_the_size_of_the_terminal
    watch
    @session.wait_for(/p pause/) { @session.resize(40, 140) }
    @session.wait_for(/0 reforks since the last cold boot/) { @session.resize(41, 150) }
    from = @session.text.size
    @session.wait_for(/\.\./) { @session.resize(10, 30) }

    refute_includes(@session.text[from..], "since the last cold boot")
  end

  def test_a_server_that_dies_and_comes_back
    watch
    @server.signal("KILL")
    see(/^no server since [\d:]+, trying again each second: /)
    @server.wait_for_exit
    again = serve(config: "workers 1\ncontrol #{socket.inspect}")
    see(/^monitor +#{again.pid} serving/)
    @session.type("q")

    assert_restored(0)
  end

  def test_no_color
    color = /\e\[3[0-9]m/
    watch

    assert_match(color, @session.bytes)
    @session.close
    watch("NO_COLOR" => "1")

    refute_match(color, @session.bytes)
  end

  def test_plain_lines_without_a_terminal
    output = IO.popen(command, err: %i[child out])
    blocks = Array.new(2) { next_block(output) }
    blocks.each { |block| assert_match(/^worker 1 +0 +\d+ idle/, block) }
    @server.refork
    wait_for_line(output, /^\d\d:\d\d:\d\d refork\.finished generation=1/)
    @server.stop
    wait_for_line(output, /^\d\d:\d\d:\d\d no server listens at /)

    refute_includes(blocks.join, "\e")
  ensure
    Process.kill("KILL", output.pid)
    output.close
  end

  def test_once
    3.times { @server.get("/") }
    text, status = Open3.capture2e(*command("--once"))

    assert_predicate(status, :success?)
    assert_match(%r{^requests/s: 0\.0}, text)
    assert_match(/^memory: [\d.]+ MiB = private [\d.]+ MiB \+ shared [\d.]+ MiB; without sharing [\d.]+ MiB$/, text)
  end

  def test_without_the_gem_the_error_names_it
    @session = Support::TerminalSession.new({ "RUBYOPT" => nil, "RUBYLIB" => nil }, RbConfig.ruby, "--disable-gems",
                                            *command.drop(1), folder: @folder)
    @session.wait_for(/pando: pando top needs the gem curses.*gem install curses/)

    assert_equal(2, @session.wait_for_exit.exitstatus)
  end

  def test_no_server
    @server.stop
    text, status = Open3.capture2e(*command)

    assert_equal(2, status.exitstatus)
    assert_match(/no server listens at/, text)
  end

  private

  # A block ends with an empty line.
  def next_block(output) = Timeout.timeout(PATIENCE) { output.gets("\n\n") }

  def wait_for_line(output, pattern)
    Timeout.timeout(PATIENCE) { nil until output.gets.match?(pattern) }
  end

  def socket = File.join(@folder, "control.sock")
  def command(*more) = Support::Checkout.pando("top", "--control", socket, *more)

  def watch(env = {})
    @session = Support::TerminalSession.new({ "NO_COLOR" => nil, **env }, "sh", "-c", AFTER, "sh", *command,
                                            folder: @folder)
    see(/^worker 1 +0 +\d+ idle/)

    assert_includes(@session.bytes, WHOLE_SCREEN)
  end

  # Waits until a line on the screen looks so.
  def see(pattern)
    wait_until(message: -> { "#{pattern.inspect} in\n#{screen.join("\n")}" }) { screen.any?(pattern) }
  end

  def screen = Support::ScreenText.of(@session.bytes)

  def top_pid = File.read("/proc/#{@session.pid}/task/#{@session.pid}/children").to_i

  def assert_restored(status)
    @session.wait_for(/ended/)
    after = @session.bytes.split(BACK, 2).last

    refute_nil(@session.bytes.index(BACK))
    assert_match(/status=#{status}\b/, after)
    assert_match(/[ ;]icanon\b.*[ ;\n]echo\b/m, after)
    assert_includes(@session.bytes, "\e[?25h", "the cursor is hidden")
  end
end
