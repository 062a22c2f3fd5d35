# frozen_string_literal: true

require "test_helper"
require "pando/measure/selection"

# Which requests both servers get, and what is said of the others.
class MeasureSelectionTest < Minitest::Test
  Selection = Pando::Measure::Selection

  def test_a_log_is_replayed_in_its_order_as_often_as_it_says
    selection = of("/b", "/a", "/b")

    assert_equal(["GET /b", "GET /a", "GET /b"], selection.requests.map(&:to_s))
    assert_equal(["GET /b", "GET /a"], selection.different.map(&:to_s))
    assert_equal("3 requests of 2 kinds: a log", selection.title)
  end

  def test_what_writes_is_left_out_and_named
    selection = of("/", 'Started POST "/posts?token=secret" for ::1 at 1', 'Started POST "/posts" for ::1 at 1',
                   "DELETE /posts/1")

    assert_equal(["GET /"], selection.requests.map(&:to_s))
    assert_equal({ Selection::WRITES => ["POST /posts (2 times)"], Selection::LISTED_WRITES => ["DELETE /posts/1"] },
                 selection.left_out)
  end

  # What such a line has is not told: it may be secret.
  def test_lines_of_a_list_that_are_no_requests_are_counted
    selection = of("/", "", "password=secret", "GET", "POST /posts")

    assert_equal({ Selection::UNREADABLE => ["2 lines, the first is line 3"],
                   Selection::LISTED_WRITES => ["POST /posts"] }, selection.left_out)
    assert_equal({ Selection::UNREADABLE => ["1 line, line 1"] }, of("hello", "/").left_out)
  end

  # A log of Rails has several other lines for each request.
  def test_lines_of_a_log_that_are_no_requests_are_nothing
    selection = of('Started GET "/posts?page=2" for ::1 at 1', "Processing by PostsController#index as HTML",
                   '  Parameters: {"token"=>"secret"}', "Completed 200 OK in 5ms", "")

    assert_equal([["GET /posts?page=2"], {}], [selection.requests.map(&:to_s), selection.left_out])
  end

  # The lines of a log are read in BINARY.
  def test_what_is_left_out_can_be_written_even_if_a_line_is_not_text
    selection = of("/", "POST /garb\xFF\n".b, "POST /caf\u00E9\n".b)
    left_out = { Selection::LISTED_WRITES => ["POST /garb", "POST /caf\u00E9"] }

    assert_equal(left_out, selection.left_out)
    assert_equal(left_out, JSON.parse(JSON.generate(selection.left_out)))
    assert_equal("POST /garb, POST /caf\u00E9", selection.left_out.values.flatten.join(", "))
  end

  def test_writes_if_the_user_wants_them
    selection = of("/", 'Started POST "/posts" for ::1 at 1', "DELETE /posts/1", writes: true)

    assert_equal(["GET /", "POST /posts", "DELETE /posts/1"], selection.requests.map(&:to_s))
    assert_empty(selection.left_out)
  end

  def test_of_many_kinds_those_that_are_asked_for_most
    often = Array.new(Selection::DIFFERENT - 1) { |number| ["/#{number}"] * 2 }.flatten
    selection = of("/once", "/first", *often, "/later")

    assert_equal(Selection::DIFFERENT, selection.different.size)
    assert_includes(selection.different.map(&:path), "/once")
    assert_equal({ Selection::RARE => ["GET /first", "GET /later"] }, selection.left_out)
  end

  def test_of_a_long_log_the_beginning
    read = 0
    lines = Enumerator.new { |log| 10_000_000.times { log << ((read += 1).even? ? "/a" : "# /b") } }
    selection = Selection.of_lines(lines, "a log")

    assert_equal([Selection::LONGEST, Selection::LONGEST * 2], [selection.requests.size, read])
    assert_equal("20000 requests of 1 kind: a log, up to its request 20000", selection.title)
    assert_empty(selection.left_out)
  end

  def test_routes_that_only_read_by_their_names
    paths = ["/", "/posts", "/users/sign_out", "/cache/delete_all", "/recede_historical_location"]
    selection = Selection.of_routes(paths)

    assert_equal(["GET /", "GET /posts"], selection.requests.map(&:to_s))
    assert_equal({ Selection::HAZARD => ["/users/sign_out", "/cache/delete_all"],
                   Selection::TURBOS => ["/recede_historical_location"] }, selection.left_out)
    assert_equal(["GET /"], Selection.of_routes(["/logout"]).requests.map(&:to_s))
  end

  def test_what_fails_is_dropped_everywhere
    selection = of("/a", "/b", "/a", "/c")
    rest = selection.without({ selection.requests[0] => "status 404", selection.requests[3] => "status 404" })

    assert_equal([["GET /b"], { "status 404" => ["GET /a", "GET /c"] }],
                 [rest.requests.map(&:to_s), rest.left_out])
  end

  def test_slices_go_round
    selection = of("/a", "/b", "/c")

    assert_equal(%w[/c /a /b /c], selection.slice(2, 4).map(&:path))
  end

  private

  def of(*lines, writes: false) = Selection.of_lines(lines, "a log", writes: writes)
end
