# frozen_string_literal: true

require "test_helper"
require "socket"
require "tmpdir"
require "pando/cluster/monitor"
require_relative "support/clock"

# What the service manager is told.
class SystemdTest < Minitest::Test
  include ClusterSupport::Clock

  Systemd = Pando::Cluster::Systemd

  def setup
    @folder = Dir.mktmpdir
    @path = File.join(@folder, "notify")
    @manager = Socket.new(:UNIX, :DGRAM, 0)
    @manager.bind(Socket.sockaddr_un(@path))
  end

  def teardown
    @systemd&.close
    @manager.close
    FileUtils.rm_rf(@folder)
    super
  end

  def start(**environment)
    @environment = { "NOTIFY_SOCKET" => @path, "HOME" => "/" }.merge(environment.transform_keys(&:to_s))
    @systemd = Systemd.from(@environment)
  end

  def emit(name, **payload) = Pando::Events.emit(name, **payload)

  def told
    messages = []
    while (message = @manager.recv_nonblock(4096, exception: false)) != :wait_readable
      messages << message
    end
    messages
  end

  # The address is no longer in the environment then.
  def test_after_an_upgrade_it_goes_on
    start(WATCHDOG_USEC: "1000000")
    emit("generation.current")
    @systemd.reconcile { "2 of 2 workers serve" }
    state = Pando::Cluster::Upgrade::State.new
    @systemd.to_state(state)
    @systemd.close
    told
    @systemd = Systemd.taken_up(state)
    emit("generation.current")
    @systemd.reconcile { "2 of 2 workers serve" }

    assert_equal(["WATCHDOG=1"], told, "it is ready, and its line of status is known")
  end

  def test_after_an_upgrade_without_a_service_manager
    state = Pando::Cluster::Upgrade::State.new
    Systemd.new(nil, nil).to_state(state)
    @systemd = Systemd.taken_up(state)

    assert_nil(@systemd.due)
  end

  def test_ready_once_with_the_first_generation
    start
    emit("monitor.listening")
    assert_empty(told)
    2.times { emit("generation.current") }

    assert_equal(["READY=1\nMAINPID=#{Process.pid}"], told)
  end

  # READY=1 would start the units that depend on this one.
  def test_a_reload_before_the_first_generation_serves_says_nothing
    start
    %w[reload.started reload.failed reload.started reload.serving reload.finished].each { |name| emit(name) }
    assert_empty(told)
    emit("generation.current")

    assert_equal(["READY=1\nMAINPID=#{Process.pid}"], told)
  end

  def test_reloading_and_ready_again
    start
    emit("generation.current")
    told
    %w[reload.serving reload.finished reload.failed].each do |outcome|
      emit("reload.started")
      emit(outcome)
      reloading, ready = told

      assert_match(/\ARELOADING=1\nMONOTONIC_USEC=\d+\z/, reloading)
      assert_equal("READY=1", ready)
    end
  end

  def test_stopping
    start
    emit("drain.started", reason: "pando drain")
    assert_empty(told)
    emit("drain.started", reason: "TERM", seconds: 5.0)
    emit("monitor.stopping", reason: "TERM", seconds: 25.0)
    emit("monitor.stopping", reason: "TERM")

    assert_equal(["STOPPING=1\nSTATUS=draining: TERM\nEXTEND_TIMEOUT_USEC=15000000",
                  "STOPPING=1\nSTATUS=stopping: TERM\nEXTEND_TIMEOUT_USEC=35000000",
                  "STOPPING=1\nSTATUS=stopping: TERM\nEXTEND_TIMEOUT_USEC=10000000"], told)
  end

  def test_a_status_is_told_when_it_changes
    start
    @systemd.reconcile { "early" }
    assert_empty(told)
    emit("generation.current")
    told
    %w[one one two].each { |status| @systemd.reconcile { status } }

    assert_equal(%w[STATUS=one STATUS=two], told)
  end

  def test_the_watchdog_hears_of_us_twice_in_its_time
    start(WATCHDOG_USEC: "4000000", WATCHDOG_PID: Process.pid.to_s)
    2.times { @systemd.reconcile { "" } }
    assert_equal(["WATCHDOG=1"], told)
    assert_in_delta(2.0, @systemd.due - now, 0.5)
    elapse(2.1)
    @systemd.reconcile { "" }

    assert_equal(["WATCHDOG=1"], told)
  end

  def test_the_watchdog_may_mean_another_process
    start(WATCHDOG_USEC: "4000000", WATCHDOG_PID: (Process.pid + 1).to_s)
    @systemd.reconcile { "" }

    assert_empty(told)
    assert_nil(@systemd.due)
  end

  def test_children_do_not_inherit_the_addresses
    start(WATCHDOG_USEC: "4000000")

    assert_equal({ "HOME" => "/" }, @environment)
  end

  def test_an_abstract_socket
    name = "pando-#{Process.pid}-#{rand(10**9)}"
    @manager.close
    @manager = Socket.new(:UNIX, :DGRAM, 0)
    @manager.bind(Socket.sockaddr_un("\0#{name}"))
    start(NOTIFY_SOCKET: "@#{name}")
    emit("generation.current")

    assert_match(/\AREADY=1/, told.first)
  end

  def test_without_a_service_manager_nothing_happens
    quiet = Systemd.from({})
    quiet.reconcile { flunk("nobody asks") }

    assert_nil(quiet.due)
    quiet.close
  end

  def test_a_service_manager_that_is_gone_harms_nobody
    start
    @manager.close
    emit("generation.current")
    @systemd.reconcile { "fine" }
    @manager = Socket.new(:UNIX, :DGRAM, 0)
  end

  def test_one_that_does_not_read_is_not_waited_for
    start
    emit("generation.current")
    speaker = Thread.new { 5000.times { |number| @systemd.reconcile { "status #{number}" } } }

    assert(speaker.join(90), "it waits")
  end
end
