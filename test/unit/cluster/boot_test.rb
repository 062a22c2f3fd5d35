# frozen_string_literal: true

require "test_helper"
require "stringio"
require "pando/cluster/monitor"
require_relative "../sys/support/in_child"
require_relative "support/fakes"
require_relative "support/payload"

# A real mold that forks on order, with this test in the monitor's place.
class ClusterBaseFrameTest < Minitest::Test
  include SysSupport::InChild

  Cluster = Pando::Cluster
  Message = Cluster::Message
  Link = Cluster::Link
  Order = Struct.new(:seat, :slot, :generation, :link, :lane_descriptors)

  # Work that does nothing, for workers that are only to come up.
  class Work
    def start(_worker); end
    def sources = []
    def idle; end
    def pulse = nil
    def stop(_deadline = nil, _by = nil); end
    def go_on; end
    def failure = nil
  end

  class Payload < ClusterSupport::Payload
    attr_accessor :hooks

    def options = ClusterSupport.options(spawn_timeout: 60.0)
    def work(_listeners, _channel) = Work.new
    def run_hook(name, *) = hooks.to_h[name]&.call
  end

  # The monitor's side, in a child of the test, of a mold in a child of that.
  class Monitor
    attr_reader :link, :pid

    def initialize(hooks, &in_mold)
      Pando::Sys.subreaper!
      @board = Pando::Sys::Scoreboard.create(8)
      @links = []
      @link, theirs = Link.pair
      monitor = Process.pid
      @pid = Process.fork do
        @link.close
        in_mold&.call
        payload = Payload.new.tap { |one| one.hooks = hooks }
        context = Cluster::Context.new(monitor_pid: monitor, scoreboard: @board, payload: payload,
                                       listeners: [])
        Cluster::BaseFrame.new.run(Cluster::Mold.new(Order.new(0, 0, 4, theirs), context))
      ensure
        exit!(0)
      end
      theirs.close
    end

    # @param given_up [Boolean] before the mold reads it
    def order(kind, role, seat = 1, given_up: false)
      ours, theirs = Link.pair
      ours.close if given_up
      @link.send(Message.new(kind, role: role, seat: seat, slot: 2, generation: 4), [theirs])
      theirs.close
      @links << ours
      ours
    end

    # Nobody stays without a monitor.
    def leave
      [@link, *@links].each { |link| link.close unless link.closed? }
      nil while Process.wait
    rescue Errno::ECHILD
      nil
    end

    # Messages until the link is silent for one of these kinds, or ends.
    def reports(link, *kinds)
      heard = []
      until kinds.include?(heard.last&.first)
        link.to_io.wait_readable(60) or raise "nothing came"
        packet = link.receive
        return heard << [:closed] if packet == :closed

        heard << [packet.message.kind, packet.message.text, packet.sender] unless packet == :nothing
      end
      heard
    end

    def row(seat) = @board.row(seat)
  end

  def with_monitor(hooks: {}, in_mold: nil)
    in_child do
      monitor = Monitor.new(hooks, &in_mold)
      yield(monitor).tap { monitor.leave }
    end
  end

  # @return [Array<Array>] what a new worker with this hook reports: kind and text
  def reports_of_worker(hook)
    with_monitor(hooks: { after_worker_fork: hook }) do |monitor|
      monitor.reports(monitor.order(:spawn, :worker)).map { |report| report.first(2) }
    end
  end

  # To be called in the mold: a library's hook around Process._fork.
  def fork_hook(&around)
    -> { Process.singleton_class.prepend(Module.new { define_method(:_fork) { around.call(-> { super() }) } }) }
  end

  def test_a_worker_comes_up_on_its_own_link_and_seat
    kinds, seat, leaving = with_monitor do |monitor|
      worker = monitor.order(:spawn, :worker)
      heard = monitor.reports(worker, :ready)
      row = monitor.row(1)
      worker.send(Message.new(:leave))
      [heard.map(&:first), [row.slot, row.generation, row.pid == heard.last.last], monitor.reports(worker).map(&:first)]
    end

    assert_equal [%w[adopted ready], [2, 4, true], %w[closed]], [kinds, seat, leaving]
  end

  def test_a_worker_that_took_long_to_start_shows_that_it_lives
    seen = with_monitor(hooks: { after_worker_fork: -> { IO.select(nil, nil, nil, 0.05) } }) do |monitor|
      monitor.reports(monitor.order(:spawn, :worker), :ready)
      monitor.row(1).heartbeat - monitor.row(1).started_at
    end

    assert_operator seen, :>=, 0.05
  end

  def test_an_order_that_was_given_up_is_not_carried_out
    forked = with_monitor do |monitor|
      monitor.order(:spawn, :worker, given_up: true)
      second = monitor.order(:spawn, :worker, 2)
      monitor.reports(second, :ready)
      [monitor.row(1).pid, monitor.row(2).pid.positive?]
    end

    assert_equal [0, true], forked
  end

  def test_a_hook_that_refuses_the_fork
    mold, worker = with_monitor(hooks: { before_fork: -> { raise Pando::HookError, "not now" } }) do |monitor|
      worker = monitor.order(:spawn, :worker)
      [monitor.reports(monitor.link, :fork_refused).map { |report| report.first(2) }, monitor.reports(worker)]
    end

    assert_equal [["fork_refused", "not now"]], mold
    assert_equal [["closed"]], worker
  end

  def test_a_stream_that_is_closed_is_named
    mold = with_monitor(in_mold: -> { $stdout.close }) do |monitor|
      monitor.order(:spawn, :worker)
      monitor.reports(monitor.link, :fork_refused).map { |report| report.first(2) }
    end

    assert_equal [["fork_refused", "$stdout is closed, and Ruby flushes it at each fork. Use $stdout.reopen(File::NULL)"]],
                 mold
  end

  def test_a_closed_object_in_place_of_a_stream_does_not_prevent_a_fork
    closed = -> { $stdout = $stderr = StringIO.new.tap(&:close) }
    worker = with_monitor(in_mold: closed) do |monitor|
      monitor.reports(monitor.order(:spawn, :worker), :ready).map(&:first)
    end

    assert_equal %w[adopted ready], worker
  end

  def test_a_hook_that_fails_in_the_new_worker
    hook = -> { raise Pando::HookError, "hook at line 1" }
    line = hook.source_location.last
    worker = reports_of_worker(hook)

    assert_equal %w[adopted detail failed closed], worker.map(&:first).uniq
    assert_equal "hook at line 1 (Pando::HookError) at test/unit/cluster/boot_test.rb:#{line}", worker[-2].last
  end

  def test_the_line_of_a_failure_is_told_once
    hook = -> { raise "#{__FILE__}:1: it failed" }
    worker = reports_of_worker(hook)

    assert_equal "#{__FILE__}:1: it failed (RuntimeError)", worker.assoc("failed").last
  end

  def test_a_librarys_fork_hook_that_raises_in_the_forker
    hook = fork_hook { |_| raise Errno::ENOMEM }
    mold, worker = with_monitor(in_mold: hook) do |monitor|
      worker = monitor.order(:spawn, :worker)
      [monitor.reports(monitor.link, :fork_failed).map(&:first), monitor.reports(worker).map(&:first)]
    end

    assert_equal [%w[fork_failed], %w[closed]], [mold, worker]
  end

  [Errno::ENOMEM, RuntimeError, NotImplementedError].each do |error|
    define_method(:"test_a_librarys_fork_hook_that_raises_#{error.name.split("::").last}_in_the_child") do
      broken = true
      hook = fork_hook { |fork| fork.call.tap { |pid| raise error, "in the child" if pid.zero? && broken } }
      worker, silent, again = with_monitor(in_mold: hook) do |monitor|
        heard = monitor.reports(monitor.order(:spawn, :worker))
        second = monitor.reports(monitor.order(:spawn, :worker, 2), :failed)
        [heard.map(&:first).uniq, monitor.link.receive, second.map(&:first).uniq]
      end

      assert_equal %w[adopted detail failed closed], worker
      assert_equal "nothing", silent, "the mold has nothing to do with it"
      assert_equal %w[adopted detail failed], again
    end
  end

  def test_whatever_cannot_be_told_ends_the_child_all_the_same
    unspeakable = Class.new(StandardError) { def message = raise("no message") }
    worker = with_monitor(hooks: { after_worker_fork: -> { raise unspeakable } }) do |monitor|
      monitor.reports(monitor.order(:spawn, :worker)).map(&:first)
    end

    assert_equal %w[adopted closed], worker
  end

  def test_a_failure_with_a_backtrace_of_its_own_is_told
    odd = Class.new(StandardError) do
      def backtrace = 5
      def message = :odd
    end
    worker = with_monitor(hooks: { after_worker_fork: -> { raise odd } }) do |monitor|
      monitor.reports(monitor.order(:spawn, :worker)).map { |report| report.first(2) }
    end

    assert_match(/\Aodd \(#<Class:.*>\)\z/, worker.assoc("failed").last)
  end

  def test_a_failure_whose_line_cannot_be_found_is_told
    hook = -> { raise IOError, "no db", ["a\0b:1:in 'x'"] }
    worker = reports_of_worker(hook)

    assert_equal "no db (IOError)", worker.assoc("failed").last
  end

  # As the error of a hook is.
  def test_an_error_without_a_line_of_the_application_has_that_of_its_cause
    hook = -> { raise "root" rescue raise(IOError, "no db", ["/elsewhere/a.rb:1:in 'x'"]) } # rubocop:disable Style/RescueModifier
    worker = reports_of_worker(hook)

    assert_equal "no db (IOError) at test/unit/cluster/boot_test.rb:#{hook.source_location.last}",
                 worker.assoc("failed").last
  end

  def test_a_failure_comes_with_its_cause_and_the_backtraces_of_both
    hook = -> { raise IOError, "root" rescue raise("it failed") } # rubocop:disable Style/RescueModifier
    worker = reports_of_worker(hook)
    details = worker.filter_map { |kind, text| text if kind == "detail" }.join
    failure, cause = details.split("caused by: ")

    assert_match(/\Ait failed \(RuntimeError\)\n#{__FILE__}:\d+/, failure)
    assert_match(/\Aroot \(IOError\)\n#{__FILE__}:\d+/, cause)
  end

  def test_a_failure_in_any_encoding_is_told
    hook = -> { raise "#{"caf\xE9".b} and more" rescue raise("ünïcode") } # rubocop:disable Style/RescueModifier
    worker = reports_of_worker(hook)

    assert_equal "ünïcode (RuntimeError) at test/unit/cluster/boot_test.rb:#{hook.source_location.last}",
                 worker.assoc("failed").last
    details = worker.filter_map { |kind, text| text if kind == "detail" }
    assert_includes details.join, "caf?"
  end
end
