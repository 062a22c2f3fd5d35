# frozen_string_literal: true

require "test_helper"
require "pando/cluster/monitor"
require_relative "support/clock"
require_relative "support/fakes"

class ClusterExitReportTest < Minitest::Test
  include ClusterSupport::Clock
  include ClusterSupport::Listening

  ExitReport = Pando::Cluster::ExitReport

  def child(role = :worker, state: :ready)
    ClusterSupport.roster(1).admit(role, 3, 2, ClusterSupport::FakeLink.new, nil).tap do |child|
      child.adopt(ClusterSupport::FakePidfd.new(77)) unless state == :ordered
      child.row.claim(1, 3, 2)
      child.become_ready if state == :ready
    end
  end

  def told(child, ending)
    ExitReport.new(child, ending).tell
    @events.last
  end

  def ended(status = 0) = ClusterSupport.ended(status)
  def killed(signal = 9) = ClusterSupport.killed(signal)

  def test_who_left_as_it_was_asked
    worker = child
    worker.leave("replaced", now + 1)
    event = told(worker, ended)

    assert_equal ["worker.exited", "replaced", 3, 2, 77, 0],
                 [event.name, *%i[reason slot generation pid requests].map { |key| event[key] }]
    refute_predicate ExitReport.new(worker, ended), :failed?
  end

  def test_who_was_killed_by_us_and_what_it_was_doing
    worker = child
    worker.row.start_job("GET", "/slow", nil, nil)
    elapse(4)
    worker.kill("hard timeout")
    event = told(worker, killed)

    assert_equal ["worker.killed", "hard timeout: signal KILL", "GET /slow"],
                 [event.name, event[:reason], event[:request]]
    assert_in_delta 4, event[:seconds], 1
  end

  # It says nothing about the generation.
  def test_who_was_killed_because_an_operator_wanted_it
    worker, other = Array.new(2) { child }
    worker.kill(Pando::Cluster::Child::BY_OPERATOR)
    other.kill("hard timeout")

    assert_equal(%i[elsewhere own], [worker, other].map { |one| ExitReport.new(one, killed).fault })
    assert_equal(["worker.killed", "pando kill: signal KILL"],
                 told(worker, killed).then { |event| [event.name, event[:reason]] })
  end

  # It may have been leaving already, for another reason.
  def test_the_cause_is_why_it_was_killed
    ["replaced", "scaled down", "its private memory is 600 MiB", nil].each do |reason|
      causes = [Pando::Cluster::Child::LEFT_LATE, "hard timeout", Pando::Cluster::Child::BY_OPERATOR,
                "it broke the protocol"].map do |verdict|
        worker = child
        worker.leave(reason, now + 1) if reason
        worker.kill(verdict)
        told(worker, killed)[:cause]
      end

      assert_equal(%i[late_exit timeout operator other], causes)
    end
    assert_nil told(child, killed)[:cause]
  end

  def test_who_was_killed_by_another
    worker = child
    assert_equal(["worker.lost", "signal KILL"], told(worker, killed).then { |event| [event.name, event[:reason]] })
    worker.leave("replaced", now + 1)
    assert_equal(["worker.lost", "replaced: signal KILL"], told(worker, killed).then do |event|
      [event.name, event[:reason]]
    end)
  end

  def test_who_was_never_ready
    worker = child(state: :adopted)
    worker.failure = "hook raised"
    worker.add_detail("its backtrace")
    event = told(worker, ended(1))

    assert_equal ["worker.failed", "hook raised: status 1", "its backtrace"],
                 [event.name, event[:reason], event[:backtrace]]
    assert_predicate ExitReport.new(worker, ended(1)), :never_ready?
    assert_predicate ExitReport.new(worker, ended(1)), :failed?
  end

  def test_who_was_never_forked
    worker = child(state: :ordered)
    worker.reason = "it was not forked in time"
    event = told(worker, nil)

    assert_equal ["worker.failed", "it was not forked in time", nil], [event.name, event[:reason], event[:pid]]
  end

  def test_who_was_told_to_end_before_it_was_ready
    mold, worker, unlucky = %i[mold worker worker].map { |role| child(role, state: :adopted) }
    [mold, worker, unlucky].each { |one| one.call_off("the server stops") }

    assert_equal(["mold.exited", "the server stops"], told(mold, killed).then { |event| [event.name, event[:reason]] })
    assert_equal "worker.exited", told(worker, ended).name
    assert_equal "worker.failed", told(unlucky, killed(11)).name
  end

  def test_who_was_told_to_end_and_was_killed_at_its_self_check
    worker = child(state: :adopted)
    worker.call_off("its generation was discarded")
    worker.kill_stuck(nil)

    event = told(worker, killed)
    assert_equal "worker.failed", event.name
    assert_match(/\Aits generation was discarded.*signal KILL\z/, event[:reason])
  end

  def test_failed_workers_and_unlucky_ones
    early = child
    assert_predicate ExitReport.new(early, ended(1)), :failed?
    assert_predicate ExitReport.new(early, ended(0)), :failed?, "nobody asked it to go"
    assert_predicate ExitReport.new(early, killed(11)), :failed?
    refute_predicate ExitReport.new(early, killed(9)), :failed?
    early.row.start_job("GET", "/", nil, nil)
    early.row.finish_job
    refute_predicate ExitReport.new(early, ended(1)), :failed?
    idle = child
    elapse(Pando::Cluster::ExitReport::YOUNG + 1)
    refute_predicate ExitReport.new(idle, ended(1)), :failed?
  end

  def test_molds
    assert_equal "mold.lost", told(child(:mold), killed).name
    assert_equal "mold.failed", told(child(:mold, state: :adopted), ended(1)).name
    %w[retired discarded].each do |word|
      mold = child(:mold)
      mold.leave(word, now + 5)
      assert_equal "mold.#{word}", told(mold, ended).name
    end
  end

  def test_a_mold_that_is_killed_while_it_retires
    late, other, deaf = Array.new(3) { child(:mold).tap { |mold| mold.leave("retired", now + 5) } }
    late.kill(Pando::Cluster::Child::LEFT_LATE)
    assert_equal(["mold.killed", "retired: it did not leave in time: signal KILL", :late_exit],
                 told(late, killed).then { |event| [event.name, event[:reason], event[:cause]] })
    assert_equal "mold.lost", told(other, killed(11)).name
    deaf.kill("retired") # it could not be told to leave
    assert_equal "mold.retired", told(deaf, killed).name
  end

  def test_a_service_is_told_of_elsewhere_unless_it_never_was_one
    assert_nil told(child(:service), ended)
    assert_equal "service.failed", told(child(:service, state: :adopted), ended(1)).name
  end

  def test_a_request_that_is_no_text_is_shown_as_one
    worker = child
    worker.row.start_job("GET", "/\xFF".b, nil, nil)

    assert_equal "GET /?", told(worker, killed)[:request]
  end
end
