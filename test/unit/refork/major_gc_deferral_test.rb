# frozen_string_literal: true

require "test_helper"
require "minitest/mock"
require "pando/native"
require "pando/sys"
require "pando/refork/collector"
require "support/deferral"
require "support/in_child"
require_relative "../http/support/fake_worker"

# Full collections, put off in a worker.
class MajorGCDeferralTest < Minitest::Test
  include Support::InChild
  include Support::Deferral
  include HTTPSupport::Events

  # Stands for Cluster::Worker.
  Worker = Struct.new(:slot, :generation, :major_gc_due) do
    def major_gc_due? = !!major_gc_due
  end

  MIB = 1024**2

  # In a process of its own.
  # @param sizes [Array<Integer>] MiB after the fork, and at each look
  # @return [Hash] of what has become of it
  def life(setting, *sizes, cause: :oldgen, warm: true, **manner)
    in_child do
      worker = Worker.new(1, 2)
      looked = nil
      figures = { wanted: -> { cause }, warm: -> { warm }, **manner }
      events = events_of { looked = looks(setting, worker, sizes, **figures) }
      { on: looked.on?, due: worker.major_gc_due?, allowed: Pando::Refork::MajorGC.allowed?, events: events.map(&:name) }
    end
  end

  def looks(setting, worker, sizes, **figures)
    now = Pando::Sys.now
    Pando::Refork::MajorGCDeferral.new(setting, size: -> { sizes.shift * MIB }, **figures).tap do |postponement|
      postponement.start(worker)
      postponement.look(now += 2) until sizes.empty? || !postponement.on?
    end
  end

  def test_older_rubies_have_their_way
    skip "this Ruby knows how" unless Pando::Refork::MajorGC.obstacle

    assert_equal({ on: false, due: false, allowed: true, events: [] }, life(:postpone, 100))
  end

  def test_it_is_the_users_to_say
    skip_without_deferral

    assert_equal({ on: true, due: false, allowed: false, events: [] }, life(:postpone, 100, 100))
    assert_equal({ on: false, due: false, allowed: true, events: [] }, life(:ruby, 100))
  end

  # There is little that it shares with its mold and will not change by itself.
  def test_not_before_the_first_refork
    skip_without_deferral

    assert_equal({ on: false, due: false, allowed: true, events: [] }, life(:postpone, 100, warm: false))
  end

  def test_by_itself_only_where_it_pays
    skip_without_deferral
    assert_equal Pando::Refork::MajorGC.unshares?, life(:auto, 100)[:on]
  end

  def test_the_worker_is_told_once_to_be_replaced
    skip_without_deferral
    assert_equal({ on: true, due: true, allowed: false, events: ["gc.major_due"] },
                 life(:postpone, 100, 116, 117, 118))
  end

  def test_where_no_replacement_is_wanted_ruby_has_its_way_at_once
    skip_without_deferral
    assert_equal({ on: false, due: false, allowed: true, events: ["gc.major_allowed"] },
                 life(:postpone, 100, 116, replaceable: false))
  end

  # Its process has no descriptor left, for instance.
  def test_where_its_size_is_unknown_nothing_is_decided
    skip_without_deferral
    seen = in_child do
      sizes = [100, nil, 148].map { |size| size && (size * MIB) }
      deferral = Pando::Refork::MajorGCDeferral.new(:postpone, size: -> { sizes.shift }, warm: -> { true })
      deferral.start(Worker.new(1, 2))
      now = Pando::Sys.now
      [2, 4].map { |seconds| deferral.look(now + seconds) || deferral.on? }
    end

    assert_equal [true, false], seen
    assert_equal(false, in_child { unmeasured_at_the_fork.on? })
  end

  def unmeasured_at_the_fork
    Pando::Refork::MajorGCDeferral.new(:postpone, size: -> {}, warm: -> { true }).tap { |one| one.start(Worker.new(1, 2)) }
  end

  def test_when_nobody_has_replaced_it_ruby_has_its_way
    skip_without_deferral
    assert_equal({ on: false, due: false, allowed: true, events: %w[gc.major_due gc.major_allowed] },
                 life(:postpone, 100, 116, 148))
  end

  # What a worker does at each look, whatever this Ruby knows.
  # @param size [Integer] MiB after the fork
  # @param seen [Array<Array(Integer, Symbol)>] MiB, and why Ruby wants a full collection, at each look
  def steps(size, *seen)
    now = [size, nil]
    in_child do
      worker = Worker.new(1, 2)
      deferral = deferral(worker, size: -> { now.first * MIB }, wanted: -> { now.last })
      seen.each_with_index.map do |look, index|
        now = look
        step(deferral, worker, Pando::Sys.now + (2 * (index + 1)))
      end
    end.map(&:to_sym)
  end

  def deferral(worker, **figures)
    Pando::Refork::MajorGC.stub(:obstacle, nil) do
      Pando::Refork::MajorGCDeferral.new(:postpone, warm: -> { true }, **figures).tap { |one| one.start(worker) }
    end
  end

  def step(deferral, worker, time)
    deferral.look(time)
    return :give_in unless deferral.on?

    worker.major_gc_due? ? :replace : :go_on
  end

  def test_as_long_as_it_does_not_grow_nothing_is_lost
    assert_equal %i[go_on go_on], steps(200, [200, nil], [210, :oldmalloc])
  end

  def test_growth_that_ruby_sees_no_garbage_in_would_not_go_away
    assert_equal %i[go_on go_on], steps(200, [240, nil], [280, nil])
  end

  def test_it_has_grown_and_ruby_wants_one
    assert_equal %i[go_on replace], steps(200, [229, :oldgen], [230, :oldgen])
  end

  # A collection of Ruby's own may have been of another opinion since.
  def test_what_ruby_has_wanted_once_it_will_want_again
    assert_equal %i[go_on replace], steps(200, [205, :oldmalloc], [240, nil])
  end

  def test_room_is_taken_in_its_place
    assert_equal %i[go_on go_on], steps(200, [205, :nofree], [240, :nofree])
  end

  # Nobody has replaced it; or there is no end to it.
  def test_there_is_a_limit
    assert_equal %i[replace give_in], steps(200, [289, :oldgen], [290, :oldgen])
    assert_equal %i[give_in], steps(200, [290, nil])
  end

  # It would be reached by nothing at all.
  def test_a_small_process_may_grow_by_some_mebibytes
    assert_equal %i[go_on replace replace give_in], steps(20, [35, :oldgen], [36, nil], [67, nil], [68, nil])
  end

  # The next mold, or one of the application's own.
  def test_a_child_of_its_is_to_have_them
    skip_without_deferral
    assert(in_child do
      Pando::Refork::MajorGCDeferral.new(:postpone, warm: -> { true }).start(Worker.new)
      IO.popen("-") { |child| child ? child.read == "true" : exit_with(Pando::Refork::MajorGC.allowed?) }
    end)
  end

  def exit_with(answer)
    $stdout.write(answer)
    $stdout.flush
    exit!(0)
  end
end
