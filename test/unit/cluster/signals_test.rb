# frozen_string_literal: true

require "test_helper"
require "pando/cluster/monitor"
require "pando/cluster/upgrade/signal_buffer"
require "support/in_child"
require "pty"
require_relative "support/simulation"

# Signals as the monitor reads them, and as they are passed on when it executes itself.
class SignalsTest < Minitest::Test
  include Support::InChild

  def test_what_has_come_waits_to_be_obeyed
    said = in_child do
      signals = Pando::Cluster::Signals.new
      signals.trap_all
      told = [signals.waiting?]
      Process.kill("HUP", Process.pid)
      told.push(signals.waiting?, signals.take)
      signals.remember(%w[TSTP TERM]) # without nodes the former is none of its signals
      [*told, signals.take]
    end

    assert_equal([false, true, %w[HUP], %w[TERM]], said)
  end

  # All that a monitor obeys, and the one that only a server with nodes does.
  def test_none_ends_the_process_between_two_images
    signals = Pando::Cluster::Signals::NAMES - %w[CHLD] + [Pando::Cluster::Signals::QUIET]

    assert_empty(signals - Pando::Cluster::Upgrade::SignalBuffer::NAMES)
  end

  def test_from_one_image_to_the_next_they_are_remembered
    interim = Pando::Cluster::Upgrade::SignalBuffer
    said = in_child do
      passed = interim.pass_on(%w[HUP CHLD])
      Process.kill("TERM", Process.pid) # ignored: it would have ended the process
      interim.begin(passed)
      %w[USR2 USR2 TSTP].each { |name| Process.kill(name, Process.pid) }
      [passed.empty?, interim.take, interim.take]
    end

    assert_equal([true, %w[HUP USR2 TSTP], []], said)
  end

  def test_where_there_are_nodes_to_be_quieted_a_server_is_not_suspended
    said = in_child do
      signals = Pando::Cluster::Signals.new(quiet: true)
      signals.trap_all
      Process.kill("TSTP", Process.pid)
      signals.take
    end

    assert_equal(%w[TSTP], said)
  end

  def test_a_stop_that_is_said_twice_at_once_is_one
    said = in_child do
      now = Pando::Sys.now
      Pando::Sys.singleton_class.prepend(Module.new { define_method(:now) { now } })
      signals = Pando::Cluster::Signals.new
      signals.trap_all
      [0, 0.09, 0.02, 5].map do |later|
        now += later
        %w[TERM INT TTIN].each { |name| Process.kill(name, Process.pid) }
        signals.take
      end
    end

    assert_equal([%w[TERM INT TTIN], %w[TTIN], %w[TERM INT TTIN], %w[TERM INT TTIN]], said)
  end
end

# What ^C means while a request runs, and before and after that.
class ClusterSignalOrdersTest < Minitest::Test
  include ClusterSupport::Clock
  include ClusterSupport::Listening

  # @!attribute had [Boolean]
  # @!attribute prompt [Boolean]
  # @!attribute refusals [Integer] so many times the kernel has no descriptor for it
  Terminal = Struct.new(:had, :prompt, :lost, :refusals) do
    def had? = had
    def prompt? = prompt

    def lost?
      raise Errno::EMFILE if (self.refusals = refusals.to_i - 1) >= 0

      lost
    end
  end

  Cluster = Struct.new(:roster, :shutdown, :reload, :ending, :reactors) { alias_method :ending?, :ending }
  Roster = Struct.new(:workers)
  Worker = Struct.new(:row)
  Row = Struct.new(:busy_since)

  # Stands for Shutdown.
  class Stop
    attr_reader :told

    def initialize = @told = []
    def begun? = @told.any?
    def quickly(signal) = @told << [:quickly, signal]
    def at_once(signal) = @told << [:at_once, signal]
  end

  def setup
    super
    @row = Row.new(now)
    @terminal = Terminal.new(true, false)
    @stop = Stop.new
    @cluster = Cluster.new(Roster.new([Worker.new(@row)]), @stop)
    @orders = Pando::Cluster::SignalOrders.new(@cluster, terminal: @terminal)
  end

  def look(seconds)
    elapse(seconds)
    @orders.proceed
  end

  def hang_up(refusals, lost: false)
    @terminal.refusals = refusals
    @terminal.lost = lost
    @cluster.reload = ClusterSupport::Recorder.new
    @orders.obey("HUP")
    @cluster.reload
  end

  def test_a_hangup_reloads_once_the_terminal_can_be_checked
    reload = hang_up(2)
    assert_empty reload.calls
    2.times { look(@orders.due - now) }

    assert_equal [[:request, "HUP"]], reload.calls
    assert_nil @orders.due
    look(1)
    assert_equal 1, reload.calls.size
  end

  def test_a_hangup_that_waits_for_the_check_is_forgotten_when_the_server_stops
    reload = hang_up(1)
    @cluster.ending = true
    look(@orders.due - now)

    assert_equal [[], nil], [reload.calls, @orders.due]
  end

  def test_a_hangup_of_a_terminal_that_has_gone_does_not_reload
    reload = hang_up(1, lost: true)
    look(@orders.due - now)

    assert_equal [[], nil], [reload.calls, @orders.due]
  end

  def test_usr1_is_for_the_access_log
    @cluster.reactors = Class.new(ClusterSupport::Recorder) { def log? = true }.new
    @orders.obey("USR1")

    assert_equal [[:reopen_log]], @cluster.reactors.calls
    assert_empty @events
  end

  # As a deployment script that was made for Puma sends it.
  def test_without_an_access_log_usr1_says_what_loads_a_new_release
    @cluster.reactors = Pando::Cluster::Listening::DirectMode.new(nil, nil)
    @orders.obey("USR1")

    told, = events("signal.ignored")
    assert_equal ["USR1", "it opens the access log anew, and there is none"], told.payload.values_at(:name, :reason)
    assert_match(/\bHUP\b.*`pando reload`/, told[:advice])
  end

  def test_at_a_prompt_it_is_the_debuggers
    @terminal.prompt = true
    @orders.obey("INT")

    assert_nil @orders.due
    assert_empty @stop.told
  end

  def test_a_prompt_that_comes_back_after_its_line
    @orders.obey("INT")
    look(@orders.due - now)
    @terminal.prompt = true
    look(@orders.due - now)

    assert_nil @orders.due
    look(1)

    assert_empty @stop.told
  end

  def test_a_request_without_a_prompt_is_interrupted_soon
    @orders.obey("INT")

    assert_empty @stop.told
    look(Pando::Cluster::SignalOrders::DOUBT + 0.01)

    assert_equal [[:quickly, "INT"]], @stop.told
    assert_nil @orders.due
  end

  def test_a_request_that_ends_leaves_no_doubt
    @orders.obey("INT")
    @row.busy_since = nil
    look(@orders.due - now)

    assert_equal [[:quickly, "INT"]], @stop.told
  end

  def test_the_second_one_is_obeyed_at_once
    2.times { @orders.obey("INT") }

    assert_equal [[:quickly, "INT"]], @stop.told
    @orders.obey("INT")

    assert_equal [:at_once, "INT"], @stop.told.last
  end

  def test_without_a_request_it_is_obeyed_at_once
    @row.busy_since = nil
    @orders.obey("INT")

    assert_equal [[:quickly, "INT"]], @stop.told
  end

  def test_without_a_terminal_it_is_obeyed_at_once
    @terminal.had = false
    @orders.obey("INT")

    assert_equal [[:quickly, "INT"]], @stop.told
  end
end

# Whether the terminal is still there.
class ClusterTerminalTest < Minitest::Test
  # In a session of its own.
  def in_session
    reader, writer = IO.pipe
    pid = fork do
      Process.setsid
      trap("HUP", "IGNORE")
      writer.puts(yield.inspect)
    ensure
      exit!(0)
    end
    writer.close
    reader.read.chomp
  ensure
    Process.wait(pid) if pid
  end

  # A session leader's first terminal becomes the one that controls it.
  def terminal
    master, slave = PTY.open
    File.open(slave.path, &:itself)
    slave.close
    master
  end

  def without_descriptors
    soft, hard = Process.getrlimit(:NOFILE)
    Process.setrlimit(:NOFILE, 0, hard)
    yield
  ensure
    Process.setrlimit(:NOFILE, soft, hard)
  end

  def test_a_terminal_that_hangs_up_is_lost_once
    told = in_session do
      master = terminal
      watched = Pando::Cluster::Terminal.new
      before = watched.lost?
      master.close
      [before, watched.lost?, watched.lost?]
    end

    assert_equal("[false, true, false]", told)
  end

  # Otherwise it would be lost for good.
  def test_a_terminal_that_cannot_be_opened_for_want_of_a_descriptor_is_not_lost
    told = in_session do
      kept = terminal
      watched = Pando::Cluster::Terminal.new
      refused = without_descriptors do
        watched.lost?
      rescue SystemCallError => e
        e.class
      end
      [refused, watched.lost?, watched.had?, kept.closed?]
    end

    assert_equal("[Errno::EMFILE, false, true, false]", told)
  end

  def test_a_server_that_starts_without_a_descriptor_for_it_has_no_terminal
    told = in_session do
      kept = terminal
      [without_descriptors { Pando::Cluster::Terminal.new }.had?, kept.closed?]
    end

    assert_equal("[false, false]", told)
  end

  def test_without_a_terminal_none_is_lost
    assert_equal("[false, false]", in_session { Array.new(2) { Pando::Cluster::Terminal.new.lost? } })
  end
end

# What becomes of children that got TERM from outside.
class ExternalSignalsTest < Minitest::Test
  include ClusterSupport::Clock
  include ClusterSupport::Listening

  def setup
    super
    @cluster = ClusterSupport::Simulation.new(workers: 2, services: [:clock])
    @cluster.boot
    @external_signals = Pando::Cluster::ExternalSignals.new(@cluster.rollout, @cluster.generations,
                                                            ClusterSupport.options)
  end

  def worker = @cluster.worker_in(0)
  def mold = @cluster.current_mold
  def past = elapse(Pando::Cluster::ExternalSignals::SPREAD + 0.001)

  def test_who_got_it_alone_is_replaced_a_moment_later
    told = worker
    @external_signals.add(told, "TERM")
    @external_signals.reconcile
    assert_predicate told, :ready?
    past
    @external_signals.reconcile

    assert_predicate told, :leaving?
    assert_equal [:leave], told.link.orders
    assert_equal(["TERM"], events("worker.leaving").map { |event| event[:reason] })
    assert_nil @external_signals.due
  end

  def test_it_is_due_then
    assert_nil @external_signals.due
    @external_signals.add(worker, "TERM")
    elapse(0.5)
    @external_signals.add(worker, "TERM")

    assert_in_delta Pando::Cluster::ExternalSignals::SPREAD - 0.5, @external_signals.due - now, 0.2
  end

  def test_a_mold
    @external_signals.add(mold, "QUIT")
    past
    @external_signals.reconcile

    assert_equal [:leave], mold.link.orders
    assert_equal "QUIT", mold.reason
  end

  def test_who_has_gone_meanwhile_is_left_alone
    @external_signals.add(worker, "TERM")
    victim = worker
    @cluster.die(victim)
    past
    @external_signals.reconcile

    assert_empty victim.link.orders
  end

  def test_services_are_not_its_business
    @external_signals.add(@cluster.roster.services.first, "TERM")

    assert_nil @external_signals.due
  end
end
