# frozen_string_literal: true

require "test_helper"
require_relative "support/simulation"

class ServiceSupervisorTest < Minitest::Test
  include ClusterSupport::Clock
  include ClusterSupport::Listening

  def setup
    super
    @cluster = ClusterSupport::Simulation.new(workers: 1, services: %i[clock mailer])
  end

  def services = @cluster.roster.services
  def service(slot) = services.find { |one| one.slot == slot }
  def places(services) = services.map { |one| [one.slot, @cluster.services.name(one)] }

  def test_each_runs_once_as_soon_as_the_application_serves
    @cluster.generations.begin_boot
    @cluster.ready(@cluster.upcoming_mold).turn
    assert_empty services
    @cluster.settle

    assert_equal [0, 1], services.map(&:slot).sort
    assert services.all?(&:ready?)
    assert_equal %i[clock mailer], events("service.ready").map { |event| event[:name] }.sort
  end

  def test_one_that_dies_is_started_again_later_each_time
    @cluster.boot
    @cluster.die(service(0)).turn
    refute_nil service(0), "once is nothing"
    @cluster.settle(1)
    waits = Array.new(3) do
      @cluster.die(service(0)).turn
      assert_nil service(0)
      wait = @cluster.throttles.due - now
      elapse(wait + 0.01)
      @cluster.settle(1)
      wait
    end

    [0.25, 0.5, 1.0].zip(waits) { |expected, wait| assert_in_delta expected, wait, 0.2 }
    assert_equal(["signal KILL"] * 4, events("service.lost").map { |event| event[:reason] })
    throttled = events("restart.throttled").map(&:payload)
    assert_equal([[:service, :clock, 2], [:service, :clock, 3], [:service, :clock, 4]],
                 throttled.map { |payload| payload.values_at(:role, :name, :rate) })
    assert_predicate service(1), :ready?
  end

  def test_one_that_dies_now_and_then_is_started_at_once_for_ever
    @cluster.boot
    20.times do
      @cluster.die(service(0)).turn
      refute_nil service(0)
      @cluster.settle(1)
      elapse(Pando::Cluster::Backoff::QUIET + 1)
    end

    assert_empty events("restart.throttled")
  end

  def test_it_moves_to_a_new_generation_and_never_lives_twice
    @cluster.boot
    @cluster.generations.refork("test")
    @cluster.ready(@cluster.upcoming_mold)
    @cluster.settle do
      assert_operator services.count { |one| one.slot.zero? && !one.gone? }, :<=, 1
    end

    assert_equal [1, 1], services.map(&:generation)
    assert_equal(["replaced"] * 2, events("service.exited").map { |event| event[:reason] })
  end

  def test_it_is_asked_to_leave_and_woken
    @cluster.boot
    @cluster.services.ask_to_leave(service(0), "replaced")

    assert_equal [[:leave], ["TERM"]], [service(0).link.orders, service(0).pidfd.signals]
    assert_in_delta now + 10, service(0).deadline, 1
    @cluster.turn
    assert_equal(1, services.count { |one| one.slot.zero? })
  end

  def test_an_order_that_cannot_be_given_waits
    @cluster.boot
    @cluster.spawner.refusing = true
    @cluster.die(service(0))
    elapse(1)
    @cluster.turn
    assert_nil service(0)
    @cluster.spawner.refusing = false
    @cluster.turn
    assert_nil service(0)
    elapse(5)
    @cluster.turn

    assert_predicate service(0), :starting?
  end

  def test_a_reload_may_leave_fewer_or_bring_more
    options = @cluster.options
    options.services = %i[mailer clock]
    @cluster.settle
    assert_predicate service(1), :ready?
    options.services = []
    @cluster.turn

    assert_equal [true, true], [service(0), service(1)].map(&:leaving?)
    @cluster.settle
    assert_empty @cluster.roster.services
  end

  def test_one_that_a_reload_moves_in_the_list_never_lives_twice
    @cluster.boot
    names = @cluster.roster.services.to_h { |child| [child, @cluster.services.name(child)] }
    @cluster.generations.refork("test") # stands for the new release
    @cluster.ready(@cluster.upcoming_mold)
    @cluster.settle(1) until @cluster.generations.current.number == 1
    @cluster.turn
    assert(names.keys.all?(&:leaving?))

    @cluster.options.services = %i[new clock mailer]
    @cluster.turn
    assert_empty services.select(&:starting?), "clock and mailer are not gone yet, and new would have clock's slot"
    @cluster.die(names.key(:clock), ClusterSupport.ended).turn
    assert_equal [[0, :new]], places(services.select(&:starting?))
    @cluster.settle

    assert_equal %i[clock mailer], events("service.exited").map { |event| event[:name] }.sort
    assert_equal [[0, :new], [1, :clock], [2, :mailer]], places(services).sort
  end

  def test_one_that_has_another_place_in_the_list_than_when_it_began_is_replaced
    @cluster.boot
    clock = service(0)
    mailer = service(1)
    @cluster.options.services = %i[mailer]
    @cluster.turn

    assert_equal ["no longer wanted", "replaced"], [clock, mailer].map(&:reason)
    @cluster.die(clock, ClusterSupport.ended).turn
    assert_equal [mailer], services
    @cluster.settle
    assert_equal [[0, :mailer]], places(services)
  end

  def test_without_a_mold_it_waits
    @cluster.boot
    @cluster.die(@cluster.current_mold)
    @cluster.die(service(0))
    elapse(5)
    @cluster.turn
    assert_nil service(0)
    @cluster.settle

    assert_predicate service(0), :ready?
  end
end
