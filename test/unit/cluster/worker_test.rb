# frozen_string_literal: true

require "test_helper"
require "support/in_child"
require "pando/cluster/monitor"
require "pando/sys"
require_relative "support/clock"
require_relative "support/payload"

# What a worker writes into its row of the scoreboard.
class ClusterWorkerTest < Minitest::Test
  include Support::InChild
  include ClusterSupport::Clock

  def setup
    @board = Pando::Sys::Scoreboard.create(2)
    @row = @board.row(1).claim(1, 0, 0)
    @worker = Pando::Cluster::Worker.allocate
    @worker.instance_variable_set(:@row, @row)
    @worker.instance_variable_set(:@title, "a worker of no cluster")
    @worker.instance_variable_set(:@context, Pando::Cluster::Context.new(payload: ClusterSupport::Payload.new))
  end

  def counted = [@row.requests, @row.failures]

  # An app's status of 500, a body that raises, a time that is over: one request that has failed. In a child, for a
  # worker names its process.
  def test_a_job_fails_once_and_when_it_is_done
    during, after = in_child do
      @row.start_job("GET", "/", nil, nil)
      2.times { @worker.job_failed }
      during = counted
      @worker.job_finished
      [during, counted]
    end

    assert_equal [0, 0], during
    assert_equal [1, 1], after
  end

  def test_the_next_one_has_not
    after = in_child do
      @worker.job_failed
      2.times do
        @row.start_job("GET", "/", nil, nil)
        @worker.job_finished
      end
      counted
    end

    assert_equal [2, 1], after
  end

  # The monitor may kill the worker before the job is done.
  def test_a_job_that_has_timed_out_counts_at_once_and_as_failed_when_it_is_done
    during, after = in_child do
      record = @worker.thread_record(1)
      [@worker, record].each { |one| one.job_started("GET", "/", nil, nil) }
      [@worker, record].each(&:job_timed_out)
      during = [@row.timeouts, *counted]
      [@worker, record].each(&:job_finished)
      [during, [@row.timeouts, *counted]]
    end

    assert_equal [2, 0, 0], during
    assert_equal [2, 2, 2], after
  end

  Work = Struct.new(:idles) do
    def idle = self.idles += 1
  end
  Link = Struct.new(:receive)

  # @param sources [Array] what is ready each time @param seconds [Array<Float>] that pass before
  # @return [Array<Integer>] how often it has looked after its work by then
  def idles(sources, seconds, link: Link.new(:nothing))
    work = Work.new(0)
    { link: link, work: work, idle_by: 0.0, leaving: false }.each do |name, value|
      @worker.instance_variable_set(:"@#{name}", value)
    end
    seconds.map do |passed|
      elapse(passed)
      @worker.send(:attend, sources.dup)
      work.idles
    end
  end

  def test_orders_without_end_do_not_keep_it_from_looking_after_its_work
    link = Link.new(:nothing)

    assert_equal([1, 1, 1, 2, 2], idles([link], [0.0, 0.1, 0.1, 10.0, 0.1], link: link))
  end

  def test_a_wait_that_its_work_has_shortened_is_no_reason_to_look_after_it
    assert_equal([1, 1, 2], idles([], [0.0, 0.05, 10.0]))
  end

  def test_its_work_tells_how_long_it_may_wait
    waits = [nil, 0.05].map do |seconds|
      @worker.instance_variable_set(:@work, Struct.new(:pulse).new(seconds))
      @worker.send(:sleep_time)
    end

    assert_equal([Pando::Cluster::Worker::TICK, 0.05], waits)
  end

  # Remembers until when it may work off its queues, and in which order all came.
  class Leaving < ClusterSupport::Payload
    attr_reader :steps, :by
    attr_accessor :failure

    def initialize
      super
      @steps = []
    end

    def stop(_drain_until, by) = @steps << [:stop, by]
    def run_hook(name, _worker) = @steps << name

    def finish_queues(_worker, by)
      @by = by
      @steps << :queues
      yield
      @steps << :queues
    end
  end

  # @return [Leaving] of a worker that ends, so many seconds after it was told to
  def leave(order, late: 0, payload: Leaving.new)
    context = Pando::Cluster::Context.new(payload: payload)
    payload.define_singleton_method(:options) { Pando::Cluster::Options.new(stop_timeout: 25.0, grace: 2.0) }
    packet = Struct.new(:message, :descriptors).new(order, [])
    elapse(late)
    { context: context, work: payload, draining: false, told_at: 0.0,
      lost_lines: Pando::LineWriter.lost }.each do |name, value|
      @worker.instance_variable_set(:"@#{name}", value)
    end
    @worker.send(:obey, packet)
    @worker.send(:finish)
    payload
  end

  def test_queues_are_worked_off_before_its_last_hook_and_after_it
    began = now
    payload = leave(Pando::Cluster::Message.new(:leave))

    assert_equal [[:stop, nil], :queues, :before_worker_exit, :queues], payload.steps
    assert_in_delta began + 20, payload.by, 1, "of stop_timeout what the end itself does not take"
  end

  def test_an_error_for_which_it_leaves_is_raised_when_everything_else_has_been_done
    payload = Leaving.new
    payload.failure = IOError.new("no good")
    error = assert_raises(IOError) { leave(Pando::Cluster::Message.new(:leave), payload: payload) }

    assert_same payload.failure, error
    assert_equal [[:stop, nil], :queues, :before_worker_exit, :queues], payload.steps
  end

  def test_queues_of_a_server_that_stops_have_what_is_left_of_its_time
    began = now
    payload = leave(Pando::Cluster::Message.hurry(:drain, 20.0), late: 12)

    assert_in_delta began + 16, payload.by, 1
    assert_in_delta payload.by, payload.steps.first.last
  end

  # Stands in for the work of a worker that leaves last: it is drained when its connections are counted down.
  Drained = Struct.new(:connections, :each_time) do
    def drained?
      each_time&.call
      (self.connections -= 1).negative?
    end
  end
  Poller = Struct.new(:ready) do
    def wait(_seconds) = ready
  end

  # @yield at each turn
  # @return [Drained] after it was told to leave last
  def drain(seconds, connections:, &each_time)
    work = Drained.new(connections, each_time)
    { poller: Poller.new([]), work: work, drain_until: now + seconds }.each do |name, value|
      @worker.instance_variable_set(:"@#{name}", value)
    end
    in_child do
      @worker.send(:drain)
      [work.connections, @worker.instance_variable_get(:@leave_within)]
    end
  end

  def configured(payload = ClusterSupport::Payload.new)
    payload.define_singleton_method(:options) { Pando::Cluster::Options.new(stop_timeout: 25.0, grace: 2.0) }
    @worker.instance_variable_set(:@context, Pando::Cluster::Context.new(payload: payload))
    @worker.instance_variable_set(:@lost_lines, Pando::LineWriter.lost)
  end

  def test_a_worker_that_leaves_last_does_so_when_it_has_no_connection_left
    configured

    assert_equal [-1, 25.0], drain(600, connections: 3)
  end

  def test_or_when_its_time_is_up
    configured

    assert_equal [90, 25.0], drain(9.5, connections: 100) { elapse(1) }
  end

  def test_or_when_the_monitor_wants_it_to_leave_sooner
    configured
    sooner = Struct.new(:message, :descriptors).new(Pando::Cluster::Message.hurry(:leave, 7.0), [])
    turns = 0
    left = drain(600, connections: 100) { @worker.send(:obey, sooner) if (turns += 1) == 2 }

    assert_equal [98, 7.0], left
  end

  # In direct mode the kernel wakes those first that have been there for longest.
  def test_stepping_back_it_leaves_its_places_at_the_listeners_and_takes_new_ones
    changes = []
    poller = Object.new
    poller.define_singleton_method(:remove) { |io| changes.push([:remove, io]) && self }
    poller.define_singleton_method(:add) { |*registration| changes.push([:add, *registration]) && self }
    work = Struct.new(:sources, :step_back).new([%i[listener exclusive], %i[eventfd edge]])
    { poller: poller, work: work }.each { |name, value| @worker.instance_variable_set(:"@#{name}", value) }
    order = Pando::Cluster::Message.new(:step_back)
    @worker.send(:obey, Struct.new(:message).new(order))

    assert_equal [%i[remove listener], %i[add listener listener exclusive]], changes
  end

  def test_what_has_become_of_it_is_sampled
    jobs = in_child do
      3.times { @row.start_job("GET", "/", nil, nil) || @worker.job_finished }
      [@row.sample.jobs, @worker.send(:sampler).take_if_changed || @row.sample.jobs]
    end

    assert_includes 2..3, jobs.first
    assert_equal 3, jobs.last
  end
end
