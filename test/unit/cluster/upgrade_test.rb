# frozen_string_literal: true

require "test_helper"
require "pando/cluster/monitor"
require_relative "support/clock"
require_relative "support/fakes"

# When the monitor goes on as another image, and when it does not.
class UpgradeUnitTest < Minitest::Test
  include ClusterSupport::Clock
  include ClusterSupport::Listening

  Upgrade = Pando::Cluster::Upgrade
  # As much of the monitor as is asked.
  Cluster = Struct.new(:generations, :reload, :examiner, :lanes, :reactors, :roster, :ending, :external_signals,
                       keyword_init: true) do
    def ending? = ending
    def pools = [self]
  end
  Answer = Class.new do
    def initialize(**answers) = answers.each { |name, value| define_singleton_method(name) { value } }
  end

  # Stands for the probe: it ends when the test says so.
  class Probe
    attr_accessor :outcome
    attr_reader :given_up

    def proceed = outcome
    def give_up = @given_up = true
    def due = 99.0
  end

  # Stands for the step itself, after which this image runs no more.
  class Exec
    attr_reader :image

    def go(image)
      yield
      @image = image
    end
  end

  def setup
    super
    @roster = ClusterSupport.roster
    @generations = Struct.new(:occupation, :upcoming).new
    @lanes = Struct.new(:told) { alias_method :told?, :told }.new(true)
    @cluster = Cluster.new(generations: @generations, reload: Answer.new(under_way?: false),
                           examiner: Answer.new(due: nil), lanes: @lanes, reactors: Answer.new(told?: true),
                           roster: @roster, external_signals: Answer.new(due: nil))
    @upgrade = Upgrade.new(@cluster, nil, nil, nil, nil)
    @upgrade.instance_variable_set(:@passage, @passage = Exec.new)
    probe = @probe = Probe.new
    @upgrade.define_singleton_method(:probe) do
      @probe = probe
      enter(:probing)
    end
  end

  def test_a_try_and_then_the_step
    @upgrade.request("test")
    turn

    assert_nil(@passage.image)
    @probe.outcome = outcome(image: :other, version: "2")
    turn
    assert_equal(:other, @passage.image)
    assert_equal(%w[upgrade.started monitor.upgrading], event_names)
    assert_equal("2", events("monitor.upgrading").first[:to])
  end

  def test_it_waits_for_what_is_begun
    @generations.occupation = ["generation 3 (refork) is rolling out", 9.0]
    @upgrade.request("test")
    turn
    elapse(Upgrade::PATIENCE - 60)
    turn
    assert_empty(events("upgrade.failed"))
    elapse(60)
    turn

    assert_equal("after 120 s still generation 3 (refork) is rolling out", reason)
    refute_predicate(@upgrade, :under_way?)
  end

  def test_what_it_waits_for
    starting = @roster.admit(:worker, 0, 0, ClusterSupport::FakeLink.new, nil)
    assert_equal("a worker is starting", obstacle)
    @roster.dismiss(starting)
    @generations.occupation = ["generation 3 is watched", 9.0]
    assert_equal("generation 3 is watched", obstacle)
    @generations.occupation = nil
    @lanes.told = false
    assert_equal("the reactor has not read its orders", obstacle)
    @lanes.told = true
    @cluster.reactors = Answer.new(told?: false)
    assert_equal("a listener is being closed", obstacle)
    @cluster.reactors = Answer.new(told?: true)
    assert_nil(obstacle)
    @cluster.reload = Answer.new(under_way?: true)
    assert_equal("a reload is under way", obstacle)
    @cluster.reload = Answer.new(under_way?: false)
    @cluster.examiner = Answer.new(due: 1.0)
    assert_equal("it is being found out where a process stands", obstacle)
  end

  # So that it comes to rest.
  def test_after_the_try_nothing_is_begun_for_a_while
    starting = tried_while_one_starts

    assert_predicate(@upgrade, :holds?)
    elapse(Upgrade::HOLD)
    refute_predicate(@upgrade, :holds?)
    assert_nil(@passage.image)
    @roster.dismiss(starting)
    turn
    assert_equal(:other, @passage.image)
  end

  def test_a_generation_on_its_way_is_not_held_up
    tried_while_one_starts
    @generations.upcoming = :booting

    refute_predicate(@upgrade, :holds?)
  end

  def test_a_failed_try_is_the_end
    @upgrade.request("test")
    turn
    @probe.outcome = outcome(reason: "no such gem", words: "Bundler::GemNotFound")
    turn

    assert_equal(["no such gem", "Bundler::GemNotFound"],
                 events("upgrade.failed").first.payload.values_at(:reason, :backtrace))
    @upgrade.request("again")
    assert_equal(2, events("upgrade.started").size)
  end

  def test_a_stop_ends_it
    @upgrade.request("test")
    turn
    @cluster.ending = true
    turn

    assert_equal("the server stops", reason)
    assert(@probe.given_up)
  end

  def test_a_second_wish_shares_the_outcome
    2.times { @upgrade.request("test") }

    assert_equal(1, events("upgrade.started").size)
  end

  private

  def outcome(**facts) = Upgrade::Probe::Outcome.new(**facts)
  def reason = events("upgrade.failed").first[:reason]
  def obstacle = @upgrade.send(:obstacle)

  def turn
    @upgrade.hear
    @upgrade.proceed
  end

  def tried_while_one_starts
    @upgrade.request("test")
    turn
    @probe.outcome = outcome(image: :other, version: "2")
    @roster.admit(:worker, 0, 0, ClusterSupport::FakeLink.new, nil).tap { turn }
  end
end
