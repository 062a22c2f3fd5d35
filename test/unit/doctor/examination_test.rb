# frozen_string_literal: true

require "test_helper"
require "pando/doctor"
require "tmpdir"

# Which requests the measurement of lazy state is made with.
class DoctorLazyStateMeasurementTest < Minitest::Test
  Doctor = Pando::Doctor

  # The report's first line has the number of all requests.
  def test_a_part_of_the_requests_is_a_part_of_all_of_them
    requests = [*(1..15).map { |number| "/#{number}" }, "/1?again", "/fails"].map { |path| request(path) }
    evidence = Doctor::Evidence.new("/app")
    requests.each { |one| evidence.sent << sent(one, one.target == "/fails" ? 500 : 200) }
    evidence.round_seconds = 100.0
    # Without a worker the requests are chosen all the same.
    Doctor::LazyStateMeasurement.new(evidence, requests, [], 1.0, parallel: false).run(nil, nil)

    assert_equal [["lazy state", Doctor::LazyStateMeasurement::FEWEST, 17]], evidence.limits.map(&:to_a)
  end

  # With threads a further child looks for shared state, after the others.
  def test_the_answer_has_the_time_of_all_children
    seconds = Doctor::LazyStateMeasurement::CHILD_SECONDS.min
    wait = { { parallel: true } => 1, { parallel: false } => 3, { parallel: true, threads: true } => 2,
             { parallel: false, threads: true } => 4 }

    wait.each do |options, children|
      assert_in_delta (children * seconds) + 1.0, measured(request("/"), **options).seconds, 0.001, options.inspect
    end
  end

  def test_a_large_request_of_any_bytes_takes_part
    large = Doctor::Request.new(verb: "POST", target: "/", headers: {}, body: "\xFF".b * 100_000)

    assert_equal([large.to_http], measured(large).requests.map { |text| text.unpack1("m0") })
  end

  private

  # A stage whose worker answers at once.
  Stage = Struct.new(:folder, :seconds, :requests) do
    def talk_to(_worker, seconds) = tap { self.seconds = seconds }

    def ask(question)
      self.requests = JSON.parse(File.read(question.delete_prefix("lazy "))).fetch("requests")
      { lazy: true, findings: [] }
    end
  end

  def measured(request, parallel: true, **options)
    evidence = Doctor::Evidence.new("/app")
    evidence.sent << sent(request, 200)
    Dir.mktmpdir do |folder|
      stage = Stage.new(folder)
      Doctor::LazyStateMeasurement.new(evidence, [request], [], 1.0, parallel: parallel, **options).run(stage, :worker)
      stage
    end
  end

  def request(path) = Doctor::Request.new(verb: "GET", target: path, headers: {}, body: nil)

  def sent(request, status)
    answer = Doctor::Conversation::Answer.new(status: status)
    Doctor::Evidence::Sent.new(request: request, generation: 0, slot: 0, answer: answer)
  end
end
