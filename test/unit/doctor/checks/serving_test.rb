# frozen_string_literal: true

require "test_helper"
require "pando/doctor"

# What is said of a process that died.
class DoctorServingTest < Minitest::Test
  LOST = { event: "worker.lost", pid: 7, generation: 0, reason: "signal KILL" }.freeze

  def test_a_worker_that_died_is_named_with_its_request
    assert_equal "a worker of generation 0 died at GET /die: signal KILL", said(request: "GET /die")
    assert_equal "a worker of generation 0 died: signal KILL", said
  end

  private

  def said(**facts)
    evidence = Pando::Doctor::Evidence.new("/app")
    evidence.facts = [{ **LOST, **facts }]
    Pando::Doctor::Checks::Serving.new(evidence).findings.first.message
  end
end
