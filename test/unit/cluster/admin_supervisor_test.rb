# frozen_string_literal: true

require "test_helper"
require "rbconfig"
require "socket"
require "tmpdir"
require "pando/cluster/monitor"
require "pando/config"
require "support/in_child"
require "support/no_descriptors"
require_relative "support/clock"
require_relative "support/fakes"

# The addresses of the admin process when the configuration changes, and what it sends. The process is any program.
class AdminSupervisorTest < Minitest::Test
  include ClusterSupport::Clock
  include ClusterSupport::Listening
  include Support::InChild
  include Support::NoDescriptors

  AdminSupervisor = Pando::Cluster::AdminSupervisor
  Upgrade = Pando::Cluster::Upgrade
  Listen = Pando::Config::Listen
  PATIENCE = 60 # seconds

  def setup
    super
    @folder = File.realpath(Dir.mktmpdir)
    @poller = Pando::Sys::Poller.new
    @admin = AdminSupervisor.open(spec(at("a"), at("b")), nil, @poller)
  end

  def teardown
    @admin.close
    @poller.close
    FileUtils.rm_rf(@folder)
    super
  end

  def test_what_both_configurations_have_stays_open_and_the_process_lives_on
    pid = started
    client = UNIXSocket.new(path("a"))
    become(at("a"), at("b"))
    @admin.reconcile

    assert_equal(pid, @admin.state[:pid])
    refute(ended?)
    assert_equal(:wait_readable, client.read_nonblock(1, exception: false), "it waits there")
  ensure
    client&.close
  end

  def test_other_options_of_the_same_address
    pid = started
    assert_equal(0o600, mode("a"))
    become(at("a", mode: 0o660), at("b"))
    @admin.reconcile

    assert_equal(0o660, mode("a"))
    assert_equal(pid, @admin.state[:pid])
  end

  def test_addresses_come_and_go_and_the_process_is_replaced
    pid = started
    become(at("b"), at("c"))
    assert_equal(%w[b c], Dir.children(@folder).sort)
    assert_raises(Errno::ENOENT) { UNIXSocket.new(path("a")) }
    @admin.reconcile
    replaced(pid)

    assert_equal("unix:#{path("b")},unix:#{path("c")}", @admin.state[:listen])
    assert_empty(events("admin.lost") + events("admin.failed"))
  end

  def test_another_command_replaces_the_process_and_keeps_the_addresses
    pid = started
    @admin.prepare(spec(at("a"), at("b"), command: %w[/bin/sleep 61]))
    @admin.adopt
    @admin.reconcile
    replaced(pid)

    assert_equal(%w[a b], Dir.children(@folder).sort)
  end

  def test_without_an_address_there_is_no_process
    started
    @admin.prepare(nil)
    @admin.adopt
    @admin.reconcile
    ended?(PATIENCE)
    @admin.hear
    @admin.reconcile

    assert_nil(@admin.state)
    assert_empty(Dir.children(@folder))
  end

  def test_what_was_prepared_and_is_given_up_leaves_no_trace
    @admin.prepare(spec(at("a"), at("c")))
    assert(File.socket?(path("c")))
    @admin.give_up
    @admin.give_up

    assert_equal(%w[a b], Dir.children(@folder).sort)
    UNIXSocket.new(path("b")).close
  end

  def test_an_address_that_is_taken_changes_nothing
    taken = UNIXServer.new(path("taken"))
    error = assert_raises(Pando::BootError) { @admin.prepare(spec(at("c"), at("taken"))) }
    @admin.give_up

    assert_match(/\Athe admin address: cannot listen on unix:.*another process listens there/, error.message)
    assert_equal(%w[a b taken], Dir.children(@folder).sort)
  ensure
    taken&.close
  end

  def test_an_address_that_others_can_reach_is_told_once
    2.times { become(Listen.parse("127.0.0.1:0"), Listen.parse("0.0.0.0:#{port}")) }

    assert_equal(["0.0.0.0:#{port}"], events("admin.exposed").map { |event| event[:listen] })
  end

  def test_descriptors_that_nobody_wants_are_closed = assert_killed_for("ready", "beat", "nonsense")
  def test_a_client_without_a_socket_breaks_the_protocol = assert_killed_for("ready", "client")

  def test_a_client_for_whose_socket_the_monitor_has_no_room_is_dropped
    sends("client", "ready")
    refute_empty(@poller.wait(PATIENCE))
    without_free_descriptors { @admin.hear }
    hear until events("admin.ready").any?

    assert_nil(@admin.instance_variable_get(:@verdict))
  end

  def test_a_rehearsal_of_an_upgrade_keeps_the_files_of_addresses_that_are_no_longer_wanted
    taken_up(document, Upgrade::StandIns.new)

    assert_equal(%w[a b], Dir.children(@folder).sort)
  end

  def test_an_upgrade_that_fails_can_go_back_to_the_image_that_wanted_more_addresses
    arguments, environment = in_child do
      GC.disable # as the new image does: objects that are dropped half made close descriptors
      Upgrade::ProcessImage.prepend(Module.new { def execute(more) = [arguments, more] })
      memory = IO.for_fd(Pando::Sys.sealed_memory("state", document.to_s))
      taken_up(memory, Upgrade::Descriptors.new)
      Upgrade::Resumption.go_back("take:#{memory.fileno}", "no gem")
    end

    assert_equal(["pando", "no gem"], [*arguments, environment[Upgrade::Resumption::REASON.to_sym]])
    assert_match(/\Aback:\d+\z/, environment[Upgrade::Resumption::VARIABLE.to_sym])
  end

  def test_after_an_upgrade_addresses_that_are_no_longer_wanted_are_closed_in_the_first_turn
    remaining, state = in_child do
      admin = taken_up(document, Upgrade::Descriptors.new)
      admin.reconcile
      [Dir.children(@folder), admin.state]
    end

    assert_equal([[], nil], [remaining, state])
  end

  def test_the_end_of_a_crash_loop_is_reported_while_the_process_lives
    started
    throttle = @admin.instance_variable_get(:@throttles)[:lost]
    5.times { throttle.fail("signal KILL") && elapse((throttle.due || now) - now + 0.001) }
    @admin.reconcile
    assert_empty(events("restart.recovered"))
    elapse(12 * Pando::Cluster::Backoff::QUIET)
    @admin.postpone(12 * Pando::Cluster::Backoff::QUIET)
    2.times { @admin.reconcile }

    refute(ended?)
    assert_equal([{ role: :admin }], events("restart.recovered").map(&:payload))
  end

  private

  # As a monitor writes it before it executes another image.
  def document
    Upgrade::State.new.tap do |state|
      state.add("monitor", version: "1", protocol: Pando::Cluster::PROTOCOL, pid: Process.pid)
      Upgrade::ProcessImage.new(%w[pando], {}).to_state(state)
      @admin.to_state(state)
    end
  end

  # The admin process of the next image, whose configuration has none.
  # @param state [State, IO] that holds its text
  def taken_up(state, descriptors)
    memory = state.is_a?(IO) ? state : IO.for_fd(Pando::Sys.sealed_memory("state", state.to_s))
    AdminSupervisor.new(nil, @poller).take_up(Upgrade::State.read(memory, descriptors), nil)
  end

  # It sends these records, and nothing of what comes along stays open.
  def assert_killed_for(*texts)
    sends(*texts)
    process = @admin.instance_variable_get(:@process)
    signals = []
    process.define_singleton_method(:signal) { |name| (signals << name) && false } # another has reaped it
    GC.start # what others have left may be closed at any time
    before = descriptors
    hear until signals.any?

    assert_equal(%w[KILL], signals)
    assert_operator(descriptors, :<=, before)
    assert_equal(1, events("admin.ready").size)
  ensure
    process&.singleton_class&.remove_method(:signal)
  end

  # The process sends these records, each with a descriptor of no socket, and stays.
  def sends(*texts)
    script = "link = Socket.for_fd(3)
              #{texts}.each { |text| link.sendmsg(text, 0, nil, Socket::AncillaryData.unix_rights(File.open(File::NULL))) }
              sleep"
    @admin.prepare(spec(at("a"), at("b"), command: [RbConfig.ruby, "--disable=gems", "-rsocket", "-e", script]))
    @admin.adopt
    started
  end

  def descriptors = Dir.children("/proc/self/fd").size

  def hear
    refute_empty(@poller.wait(PATIENCE))
    @admin.hear
  end

  def at(name, mode: 0o600) = Listen.parse("unix:#{path(name)}", mode: mode)
  def path(name) = File.join(@folder, name)
  def mode(name) = File.stat(path(name)).mode & 0o777
  def spec(*listen, command: %w[/bin/sleep 60]) = AdminSupervisor::Spec.new(listen, command, {})
  def port = @port ||= TCPServer.open("0.0.0.0", 0) { |server| server.local_address.ip_port }

  def become(*listen)
    @admin.prepare(spec(*listen))
    @admin.adopt
  end

  def started
    @admin.reconcile
    @admin.state.fetch(:pid)
  end

  # @return [Boolean] whether the process has ended, after at most so many seconds
  def ended?(seconds = 0) = !@admin.instance_variable_get(:@process).to_io.wait_readable(seconds).nil?

  def replaced(pid)
    assert(ended?(PATIENCE))
    @admin.hear
    @admin.reconcile
    refute_includes([nil, pid], @admin.state[:pid])
  end
end
