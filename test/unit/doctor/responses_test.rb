# frozen_string_literal: true

require "test_helper"
require "pando/doctor"

# How the doctor counts what the application answered.
class DoctorResponsesTest < Minitest::Test
  Doctor = Pando::Doctor

  def test_all_were_served
    responses = responses_of(200, 204)

    assert_predicate responses, :served?
    assert_equal [{ 200 => 1, 204 => 1 }, ""], [responses.statuses, responses.to_s]
  end

  def test_the_others_are_told_by_their_class
    responses = responses_of(302, 404, 301, 200, nil, 302)

    assert_predicate responses, :served?
    assert_equal "3 of 6 requests were redirected, 1 was answered with 404, 1 got no response", responses.to_s
    assert_equal({ 200 => 1, 301 => 1, 302 => 2, 404 => 1 }, responses.statuses)
  end

  def test_none_was_served
    refute_predicate responses_of(302), :served?
    assert_equal "1 of 1 request was redirected", responses_of(302).to_s
  end

  def test_an_application_is_broken_if_half_of_its_requests_fail
    assert_predicate responses_of(500, 200, 503, 404), :broken?
    refute_predicate responses_of(500, 200, 302, 404, nil), :broken?
  end

  # A login, or another host. The query may hold secrets.
  def test_the_target_of_a_redirection_is_told
    first = Doctor::Responses.new([sent(0, 200), sent(1, 302), sent(2, 301, "https://x.example/\xE9?state=1#a".b),
                                   sent(3, 302, "/login")])

    assert_equal "3 of 4 requests were redirected; a redirection leads to https://x.example/?", first.to_s
    assert_predicate first.to_s, :valid_encoding?
    assert_equal ["responses: #{first}"], first.notes
  end

  # The application has compared, or a cache has.
  def test_not_modified_is_a_good_answer
    assert_predicate responses_of(304), :served?
    assert_equal [{ 304 => 1 }, ""], [responses_of(304).statuses, responses_of(304).to_s]
  end

  def test_a_request_counts_with_its_first_response
    responses = Doctor::Responses.new([sent(0, 503), sent(0, 200), sent(0, 200)])

    assert_predicate responses, :served?
    assert_equal [{ 503 => 1 }, "1 of 1 request was answered with 503"], [responses.statuses, responses.to_s]
  end

  private

  def responses_of(*statuses) = Doctor::Responses.new(statuses.map.with_index { |status, at| sent(at, status) })

  def sent(number, status, location = nil)
    request = Doctor::Request.new(verb: "GET", target: "/#{number}", headers: {}, body: nil)
    answer = Doctor::Conversation::Answer.new(status: status, location: location)
    Doctor::Evidence::Sent.new(request: request, generation: 0, slot: 0, answer: answer)
  end
end
