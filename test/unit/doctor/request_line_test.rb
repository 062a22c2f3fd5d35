# frozen_string_literal: true

require "test_helper"
require "pando/doctor/request_line"

# A line of a list or of a log; see also DoctorRequestListTest.
class DoctorRequestLineTest < Minitest::Test
  def test_a_log_of_rails_with_tags_or_without
    plain = 'Started GET "/posts?page=2" for 127.0.0.1 at 2026-11-23 21:42:02 +0000'
    tagged = 'I, [2026-11-23T21:42:02 #17]  INFO -- : [3d2f] Started HEAD "/up" for ::1 at 2026-11-23 21:42:02 +0000'

    assert_equal(["GET /posts?page=2", "HEAD /up"], [plain, tagged].map { |text| line(text).request.to_s })
    assert_predicate(line(plain), :logged?)
  end

  def test_other_lines_of_such_a_log
    ["Processing by PostsController#index as HTML", "  Parameters: {\"page\"=>\"2\"}",
     "Completed 200 OK in 5ms (Views: 3.1ms | ActiveRecord: 0.3ms)", "Started GET \"/a b\" for ::1",
     "Started GET \"http://\" for"].each { |text| assert_nil(line(text).request, text) }
  end

  def test_what_does_more_than_read
    refute_predicate(line('Started POST "/posts" for ::1 at 2026'), :safe?)
    assert_predicate(line('Started POST "/posts" for ::1 at 2026'), :logged?)
    refute_predicate(line("POST /posts title=a"), :logged?)
    assert_predicate(line("HEAD /posts"), :safe?)
  end

  def test_an_empty_line_is_none
    ["", "  \n", "# GET /"].each { |text| assert_predicate(line(text), :empty?) }
    refute_predicate(line("hello"), :empty?)
  end

  private

  def line(text) = Pando::Doctor::RequestLine.new(text)
end
