# frozen_string_literal: true

require "test_helper"
require "pando/cluster/reload"
require "pando/errors"
require_relative "support/clock"
require_relative "support/fakes"

# A reload whose configuration is not read to its end.
class ClusterReloadTest < Minitest::Test
  include ClusterSupport::Clock
  include ClusterSupport::Listening

  # Stands for Server::Renewal: one that is being read.
  Renewal = Struct.new(:ready, :given_up) do
    def ready? = !!ready
    def due = nil
    def give_up = self.given_up = true
    def command = []
    def within = yield
  end
  Generation = Struct.new(:number, :state)

  def setup
    super
    @renewals = []
    payload = Object.new
    renewals = @renewals
    payload.define_singleton_method(:renew) { |_poller| Renewal.new.tap { |renewal| renewals << renewal } }
    generations = Struct.new(:upcoming) do
      def rooted? = upcoming.nil?
      def reload(*) = Generation.new(1, :booting)
    end.new
    @reload = Pando::Cluster::Reload.new(generations, payload, nil, ClusterSupport::Recorder.new, nil)
  end

  def turn
    @reload.attend
    @reload.reconcile
  end

  def reasons(name) = events(name).map { |event| event[:reason] }

  def test_another_one_takes_the_place_of_one_that_hangs
    ask
    elapse(3)
    @reload.request("HUP")
    turn

    assert_equal([true, nil], @renewals.map(&:given_up))
    assert_equal(["another one was asked for (HUP)"], reasons("reload.failed"))
    assert_equal(%w[test HUP], reasons("reload.started"))
  end

  def test_but_not_at_once
    ask
    @reload.request("HUP")
    turn

    assert_equal([nil], @renewals.map(&:given_up))
    assert_empty(events("reload.failed"))
  end

  def test_it_can_be_called_off
    ask
    @reload.request("HUP") # to follow it
    assert(@reload.cancel("called off"))
    turn

    assert_equal([[true], ["called off"]], [@renewals.map(&:given_up), reasons("reload.failed")])
    refute_predicate(@reload, :under_way?)
  end

  def test_there_may_be_nothing_to_call_off
    refute(@reload.cancel("called off"))
    ask
    @renewals.last.ready = true
    turn

    refute(@reload.cancel("called off"), "its generation is on its way")
    assert_predicate(@reload, :under_way?)
  end

  private

  def ask
    @reload.request("test")
    turn
  end
end
