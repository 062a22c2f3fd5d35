# frozen_string_literal: true

require "test_helper"
require "pando/cluster/monitor"
require_relative "../support/fakes"

# Which lanes exist, and in what order the reactor hears of them.
class LanesTest < Minitest::Test
  # Stands for HTTP::ReactorSetup.
  class Setup
    attr_writer :routes

    def routes = @routes.to_s
    attr_reader :lanes

    def initialize(lanes) = @lanes = lanes
    def lane = [end_of_pipe, UNIXSocket.pair(:SEQPACKET), end_of_pipe]
    def end_of_pipe = IO.pipe.tap { |reader, _| (@made ||= []) << reader }.last
  end

  # Stands for Memory::OomWatch.
  Oom = Struct.new(:killed) do
    def victim?(_child) = killed
  end

  # Stands for a child in a slot.
  Worker = Struct.new(:ending, :overdue, :suspect, :gone, :blamed, :threads, :late) do
    def initialize(*) = super.then { self.threads ||= 1 }
    def pool = 0
    def slot = 3
    def generation = 2
    def blames?(job) = blamed.nil? || blamed == job
    def overdue? = !!overdue
    def left_late? = !!late
    def suspect? = !!suspect
    def gone? = !!gone
  end

  # Stands for the reactor: takes as many records as it has room for.
  class Reactor
    attr_reader :records
    attr_accessor :room

    def initialize(room = 1000)
      @room = room
      @records = []
    end

    def order(message, descriptors)
      return false if @room.zero?

      @room -= 1
      @records << [message.kind, message.lane, message.encode.unpack("L6")[2], descriptors.size]
      true
    end
  end

  def setup
    @oom = Oom.new(false)
    @lanes = Pando::Cluster::Reactor::Lanes.new(Setup.new(3), @oom)
    @reactor = Reactor.new
  end

  def told
    @lanes.tell(@reactor)
    @reactor.records.tap { @reactor = Reactor.new }
  end

  def killed_by(signal) = Pando::Sys::Ending.new(:killed, Signal.list.fetch(signal))

  # @return [Array] what the reactor is told of the end of such a worker
  def end_of(ending: killed_by("KILL"), **how)
    worker = Worker.new(ending, how[:overdue], how[:suspect]).tap { |one| one.late = how[:late] }
    @lanes.open_for(worker)
    told
    worker.gone = true
    @lanes.close_deserted
    told.map { |kind, _lane, cause, _| [kind, cause] }
  end

  def test_a_lane_is_told_with_its_three_descriptors
    @lanes.open_for(Worker.new)

    assert_equal [[:lane_open, 0, 0, 3]], told
  end

  def test_the_number_that_has_been_free_for_longest_is_next
    first = Worker.new
    assert_equal 0, @lanes.open_for(first).first.number
    first.gone = true
    @lanes.close_deserted

    assert_equal [1, 2, 0], Array.new(3) { @lanes.open_for(Worker.new).first.number }
  end

  def test_there_are_no_more_than_the_channel_has
    3.times { @lanes.open_for(Worker.new) }

    error = assert_raises(Pando::Error) { @lanes.open_for(Worker.new) }
    assert_match(/all 3 lanes/, error.message)
  end

  def test_what_does_not_fit_into_the_link_is_told_later_in_the_same_order
    2.times { @lanes.open_for(Worker.new) }
    @reactor.room = 1

    refute @lanes.tell(@reactor)
    @reactor.room = 5
    assert @lanes.tell(@reactor)
    assert_equal([0, 1], @reactor.records.map { |record| record[1] })
  end

  def test_a_new_reactor_is_told_of_all_that_live
    workers = Array.new(3) { Worker.new.tap { |worker| @lanes.open_for(worker) } }
    told
    workers[1].gone = true
    @lanes.close_deserted
    @lanes.tell_all

    assert_equal([[:lane_open, 0], [:lane_open, 2]], told.map { |record| record.first(2) })
  end

  def test_a_lane_whose_opening_was_not_told_is_not_opened
    worker = Worker.new(killed_by("KILL"))
    @lanes.open_for(worker)
    worker.gone = true
    @lanes.close_deserted

    assert_equal([[:lane_dead, 0]], told.map { |record| record.first(2) })
  end

  def test_of_what_a_worker_died
    assert_equal [[:lane_dead, 0]], end_of
    assert_equal [[:lane_dead, 1]], end_of(overdue: true)
    assert_equal [[:lane_dead, 4]], end_of(overdue: true, late: true)
    assert_equal [[:lane_dead, 2]], end_of(suspect: true)
    assert_equal [[:lane_dead, 2]], end_of(ending: killed_by("SEGV"))
    assert_equal [[:lane_dead, 2]], end_of(ending: killed_by("ABRT"))
    assert_equal [[:lane_dead, 0]], end_of(ending: killed_by("TERM"))
    assert_equal [[:lane_dead, 0]], end_of(ending: Pando::Sys::Ending.new(:exited, 1))
    assert_equal [[:lane_close, 0]], end_of(ending: nil)
  end

  def test_only_the_request_that_is_blamed_pays_for_the_death_of_a_worker_with_several
    worker = Worker.new(killed_by("KILL"), nil, nil, nil, 2)
    worker.threads = 3
    lanes = @lanes.open_for(worker)
    assert_equal([[:lane_open, 0, 0], [:lane_open, 1, 0], [:lane_open, 2, 0]], told.map { |record| record.first(3) })
    assert_equal([1, 2, 3], lanes.map(&:job))
    worker.gone = true
    @lanes.close_deserted

    assert_equal([3, 0, 3], told.map { |record| record[2] })
  end

  def test_a_worker_that_was_killed_while_memory_ran_out_may_have_caused_it
    @oom.killed = true

    assert_equal [[:lane_dead, 2]], end_of
  end

  def test_the_owner_of_a_lane
    worker = Worker.new
    @lanes.open_for(worker)

    assert_same worker, @lanes.owner(0)
    assert_nil @lanes.owner(1)
  end

  def test_a_lane_that_is_closed_leaves_no_descriptor_open
    worker = Worker.new(killed_by("KILL"))
    lane = @lanes.open_for(worker).first
    told
    worker.gone = true
    @lanes.close_deserted

    assert((lane.for_worker + lane.for_reactor).all?(&:closed?))
  end
end
