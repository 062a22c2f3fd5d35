# frozen_string_literal: true

require "test_helper"
require "pando/doctor"

# What children inherit wrongly, told from the snapshots of a mold, a worker that was forked from too, and workers.
class DoctorInheritanceTest < Minitest::Test
  EMPTY = { threads: [], natives: [], locks: [], traps: { loaded: [], now: [] }, caught: "0", constants: [] }.freeze

  def test_each_process_that_draws_from_a_copied_generator_counts_once
    found = findings(fork(1, "a"), fork(2, "b", [1, 2]), served(3, "c", [1, 3]), served(4, "d", [1, 2, 4]))

    assert_equal([%i[random_copied error]], found.map { |one| [one.kind, one.severity] })
    assert_includes(found.first.message, "drawn from in 2 processes after it")
  end

  def test_one_process_that_draws_is_a_warning
    found = findings(fork(1, "a"), served(2, "b", [1, 2]), served(3, "a", [1, 3]))

    assert_equal([:warning], found.map(&:severity))
    assert_includes(found.first.message, "drawn from in one process after it")
  end

  private

  def fork(pid, state, ancestors = [pid]) = snapshot("fork", pid, state, ancestors)
  def served(pid, state, ancestors) = snapshot("served", pid, state, ancestors)

  def snapshot(moment, pid, state, ancestors)
    generators = [{ id: 8, state: state, location: "/app/config.ru:1" }]
    { **EMPTY, snapshot: moment, pid: pid, ancestors: ancestors, generators: generators }
  end

  def findings(*facts)
    evidence = Pando::Doctor::Evidence.new("/app")
    evidence.facts = facts
    Pando::Doctor::Checks::Inheritance.new(evidence).findings
  end
end

# What is said of a process that died.
class DoctorServingTest < Minitest::Test
  LOST = { event: "worker.lost", pid: 7, generation: 0, reason: "signal KILL" }.freeze

  def test_a_worker_that_died_is_named_with_its_request
    assert_equal "a worker of generation 0 died at GET /die: signal KILL", said(request: "GET /die")
    assert_equal "a worker of generation 0 died: signal KILL", said
  end

  def test_the_line_at_which_it_failed_is_found_in_the_reason
    assert_equal "config/initializers/pay.rb:7",
                 found(reason: "no key (KeyError) at config/initializers/pay.rb:7: status 1").location
    assert_equal "/app/config/pando.rb:2",
                 found(reason: "after_worker_fork hook at /app/config/pando.rb:2 raised IOError: no db").location
    assert_nil found.location
  end

  private

  def said(**facts) = found(**facts).message

  def found(**facts)
    evidence = Pando::Doctor::Evidence.new("/app")
    evidence.facts = [{ **LOST, **facts }]
    Pando::Doctor::Checks::Serving.new(evidence).findings.first
  end
end
