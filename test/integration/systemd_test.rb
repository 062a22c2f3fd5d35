# frozen_string_literal: true

require "test_helper"
require "socket"
require "support/servers"

# The real server under something that listens as systemd does.
class SystemdNotifyTest < Minitest::Test
  include Support::Servers

  def setup
    @folder = Dir.mktmpdir
    @manager = Socket.new(:UNIX, :DGRAM, 0)
    @manager.bind(Socket.sockaddr_un(File.join(@folder, "notify")))
  end

  def teardown
    super
    @manager.close
    FileUtils.rm_rf(@folder)
  end

  attr_reader :manager

  def start(config = "", **options)
    serve(app: "run ->(_env) { [200, {}, [ENV.key?('NOTIFY_SOCKET').to_s]] }", config: "workers 2\n#{config}",
          env: { "NOTIFY_SOCKET" => File.join(@folder, "notify"), "WATCHDOG_USEC" => "1000000" }, **options)
  end

  def test_from_ready_to_stopping
    server = start
    hear(manager, /\AREADY=1\nMAINPID=#{server.pid}\z/)
    hear(manager, /\ASTATUS=2 of 2 workers serve\z/)
    2.times { hear(manager, /\AWATCHDOG=1\z/) }
    assert_equal("false", server.get("/").body)
    server.signal("HUP")
    hear(manager, /\ARELOADING=1\n/)
    hear(manager, /\AREADY=1\z/)
    assert_predicate(server.stop, :success?)
    hear(manager, /\ASTOPPING=1\nSTATUS=stopping: TERM\nEXTEND_TIMEOUT_USEC=35000000\z/)
  end

  def test_a_drain_is_a_part_of_the_stop
    server = start("drain_delay 300")
    server.signal("TERM")
    hear(manager, /\ASTOPPING=1\nSTATUS=draining: TERM\nEXTEND_TIMEOUT_USEC=310\d{6}\z/)
    hear(manager, /\ASTATUS=2 of 2 workers serve, draining\z/)
    server.signal_again("TERM")
    hear(manager, /\ASTOPPING=1\nSTATUS=stopping: TERM\n/)

    assert_predicate(server.wait_for_exit, :success?)
  end

  # As systemd does it when WATCHDOG=1 does not come: ABRT for the monitor, then KILL for all that is left.
  def test_a_monitor_that_hangs_is_missed_and_its_successor_serves
    address = "127.0.0.1:#{free_port}"
    server = start(listen: address)
    hear(manager, /\AWATCHDOG=1\z/)
    server.signal("STOP")
    silence
    children = server.tree.children.map(&:pid)
    %w[ABRT CONT].each { |signal| server.signal(signal) }
    assert_equal(Signal.list["ABRT"], server.wait_for_exit.termsig)
    children.each { |pid| kill(pid) }
    successor = start(listen: address)

    assert_operator(successor.workers.size, :==, 2)
    assert_predicate(successor.stop, :success?)
  end

  private

  # For longer than it may be.
  def silence
    nil while manager.wait_readable(1.2) && manager.recv(4096)
  end

  def kill(pid)
    Process.kill("KILL", pid)
  rescue Errno::ESRCH
    nil # it has ended with its monitor
  end

  # Others may come before it.
  def hear(manager, wanted)
    heard = []
    until heard.last&.match?(wanted)
      assert(manager.wait_readable(90), "no #{wanted.inspect}, but #{heard.inspect}")
      heard << manager.recv(4096)
    end
  end
end
