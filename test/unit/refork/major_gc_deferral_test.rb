# frozen_string_literal: true

require "test_helper"
require "pando/native"
require "pando/sys"
require "pando/refork/major_gc_deferral"
require "support/in_child"
require_relative "../http/support/fake_worker"

# Full collections, put off in a worker.
class MajorGCDeferralTest < Minitest::Test
  include Support::InChild
  include HTTPSupport::Events

  # Stands for Cluster::Worker.
  Worker = Struct.new(:slot, :generation, :due) do
    def major_gc_due? = !!due
  end

  MIB = 1024**2

  # Where Ruby knows how.
  def possible
    reason = Pando::Refork::MajorGC.obstacle
    skip reason if reason
  end

  # In a process of its own.
  # @param sizes [Array<Integer>] MiB after the fork, and at each look
  # @return [Hash] of what has become of it
  def life(setting, *sizes, cause: :oldgen, warm: true)
    in_child do
      worker = Worker.new(1, 2)
      looked = nil
      events = events_of { looked = looks(setting, worker, sizes, wanted: -> { cause }, warm: -> { warm }) }
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
    possible

    assert_equal({ on: true, due: false, allowed: false, events: [] }, life(:postpone, 100, 100))
    assert_equal({ on: false, due: false, allowed: true, events: [] }, life(:ruby, 100))
  end

  # There is little that it shares with its mold and will not change by itself.
  def test_not_before_the_first_refork
    possible

    assert_equal({ on: false, due: false, allowed: true, events: [] }, life(:postpone, 100, warm: false))
  end

  def test_by_itself_only_where_it_pays
    possible
    assert_equal Pando::Refork::MajorGC.dear?, life(:auto, 100)[:on]
  end

  def test_the_worker_is_told_once_to_be_replaced
    possible
    assert_equal({ on: true, due: true, allowed: false, events: ["gc.major_due"] },
                 life(:postpone, 100, 116, 117, 118))
  end

  def test_when_nobody_has_replaced_it_ruby_has_its_way
    possible
    assert_equal({ on: false, due: false, allowed: true, events: %w[gc.major_due gc.major_allowed] },
                 life(:postpone, 100, 116, 148))
  end

  # The next mold, or one of the application's own.
  def test_a_child_of_its_is_to_have_them
    possible
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
