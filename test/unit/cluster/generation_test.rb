# frozen_string_literal: true

require "test_helper"
require "pando/cluster/monitor"
require_relative "support/fakes"

class ClusterGenerationTest < Minitest::Test
  include ClusterSupport::Listening

  Generation = Pando::Cluster::Generation
  STATES = %i[booting ready canary rolling current retired discarded].freeze
  WAYS = {
    booting: [], ready: %i[ready], canary: %i[ready canary], rolling: %i[ready canary rolling],
    current: %i[ready canary rolling current], retired: %i[retired], discarded: %i[discarded]
  }.freeze
  ALLOWED = {
    booting: %i[ready discarded retired], ready: %i[canary discarded retired],
    canary: %i[rolling current discarded retired], rolling: %i[current discarded retired],
    current: %i[retired discarded], retired: [], discarded: []
  }.freeze

  def generation_in(state) = Generation.new(3, :refork, nil).tap { |one| WAYS[state].each { |step| one.enter(step) } }

  def test_the_only_ways
    STATES.product(STATES) do |from, to|
      generation = generation_in(from)
      if ALLOWED[from].include?(to)
        generation.enter(to)
        assert_equal to, generation.state
      else
        error = assert_raises(ArgumentError) { generation.enter(to) }
        assert_includes error.message, "generation 3: from #{from} to #{to}"
        assert_equal from, generation.state
      end
    end
  end

  def test_each_step_is_told
    generation_in(:current).enter(:retired, reason: "enough")

    assert_equal %w[booting ready canary rolling current retired].map { |state| "generation.#{state}" }, event_names
    assert_equal "enough", @events.last[:reason]
    assert_equal [[3, :refork]], @events.map { |event| [event[:generation], event[:purpose]] }.uniq
  end

  def test_that_it_has_served_is_known_after_its_end
    assert_equal [false, true, true], [generation_in(:rolling), generation_in(:current),
                                       generation_in(:current).tap { |one| one.enter(:retired) }].map(&:served?)
    refute_predicate generation_in(:ready).tap { |one| one.enter(:retired) }, :served?
  end

  def test_states_can_be_asked_for
    generation = generation_in(:canary)

    assert_predicate generation, :canary?
    refute_predicate generation, :rolling?
    assert_predicate Generation.new(1, :heal, nil), :heal?
    refute_predicate generation, :heal?
  end

  def test_it_forks_while_its_mold_is_ready
    roster = ClusterSupport.roster
    generation = generation_in(:canary)
    refute_predicate generation, :forks?
    generation.mold = roster.admit(:mold, 0, 3, ClusterSupport::FakeLink.new, nil)
    refute_predicate generation, :forks?
    generation.mold.become_ready
    assert_predicate generation, :forks?
    generation.mold.leave("retired", 1.0)
    refute_predicate generation, :forks?
  end
end
