# frozen_string_literal: true

require "test_helper"
require "pando/doctor"

class DoctorFirstGenerationTest < Minitest::Test
  Doctor = Pando::Doctor
  # No worker is there to be asked: the requests are chosen all the same.
  Examination = Struct.new(:evidence, :requests, :stuck) do
    def worker_in(*) = nil
  end

  # The report's first line has the number of all requests.
  def test_a_part_of_the_requests_is_a_part_of_all_of_them
    requests = [*(1..15).map { |number| "/#{number}" }, "/1?again", "/fails"].map { |path| request(path) }
    evidence = Doctor::Evidence.new("/app")
    requests.each { |one| evidence.sent << sent(one, one.target == "/fails" ? 500 : 200) }
    evidence.round_seconds = 100.0
    Doctor::FirstGeneration.new(Examination.new(evidence, requests, []), 1.0).examine(parallel: false)

    assert_equal [["lazy state", Doctor::FirstGeneration::FEWEST, 17]], evidence.limits.map(&:to_a)
  end

  private

  def request(path) = Doctor::Request.new(verb: "GET", target: path, headers: {}, body: nil)

  def sent(request, status)
    answer = Doctor::Conversation::Answer.new(status: status)
    Doctor::Evidence::Sent.new(request: request, generation: 0, slot: 0, answer: answer)
  end
end
