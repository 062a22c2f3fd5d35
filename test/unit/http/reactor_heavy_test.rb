# frozen_string_literal: true

require "test_helper"
require_relative "support/reactor_case"
require_relative "support/slow_readers"

# Requests whose answers wait in files for slow readers: while much is unread, others go past them.
class HTTPReactorHeavyTest < Minitest::Test
  include HTTPSupport::ReactorCase
  include HTTPSupport::SlowReaders

  def test_half_of_the_workers_serve_them_while_much_is_unread
    crowded
    slow_reader("/large")
    second = slow_reader("/large")
    waiting(2)
    light = request(GET)
    heavy, other = [0, 1].map { |lane| @stage.take(lane) }.sort_by(&:path).reverse

    assert_equal %w[/large /], [heavy.path, other.path]
    @stage.answer(other)
    assert_equal "hello", body_of(light)
    @stage.answer(heavy)
    @stage.answer(@stage.take(heavy.lane))
    assert_equal "hello", body_of(second)
  end

  def test_their_numbers_and_queries_do_not_matter
    crowded("/files/17?a")
    slow_reader("/files/2034")
    slow_reader("/files/9?b=c")
    waiting(2)
    request(GET)

    assert_equal %w[/ /files/2034], takes(0, 1).map(&:path).sort
  end

  def test_in_calm_times_they_wait_for_nobody
    reader = crowded
    reader.read
    count("spooled_responses", 0)
    2.times { request("GET /large HTTP/1.1\r\nhost: a\r\n\r\n") }

    assert_equal %w[/large /large], takes(0, 1).map(&:path)
  end

  def test_what_was_set_aside_is_served_when_there_is_room_again
    reader = crowded
    3.times { slow_reader("/large") }
    waiting(3)
    served = [0, 1].filter_map { |lane| @stage.take(lane, patience: 1) }
    assert_equal %w[/large], served.map(&:path)
    counts("queued" => 2)
    reader.read

    assert_equal "/large", @stage.take(1 - served.first.lane).path
  end

  def test_much_is_half_of_the_total
    crowded(bytes: MB)
    assert_includes 700_000..MB, unread
    2.times { slow_reader("/large") }
    taken = takes(0, 1)
    assert_equal %w[/large /large], taken.map(&:path)

    much(taken.first, MB / 2)
    wait_until { unread > MB }
    @stage.finish(taken.first, keep: false)
    @stage.answer(taken.last)
    2.times { slow_reader("/large") }
    waiting(4)
    request(GET)
    assert_equal %w[/ /large], takes(0, 1).map(&:path).sort
  end

  def test_a_route_is_forgotten_when_its_answers_are_taken_in_time
    crowded
    8.times { taken_in_time }
    2.times { slow_reader("/large") }

    assert_equal %w[/large /large], takes(0, 1).map(&:path)
  end

  def test_seven_answers_are_too_few_to_forget_it
    crowded
    7.times { taken_in_time }
    2.times { slow_reader("/large") }
    waiting(9)
    request(GET)

    assert_equal %w[/ /large], takes(0, 1).map(&:path).sort
  end

  def test_a_short_answer_that_finds_the_memory_full_makes_nothing_heavy
    stage(lanes: 1, response_memory: 1_000_000, response_total: 1_000_000)
    slow_reader("/large")
    @stage.finish(answer(9 * MB), keep: false)
    before = @stage.stats.fetch("spooled_responses")
    slow_reader("/short")
    @stage.finish(answer(MB / 2), keep: false)
    wait_until { @stage.stats.fetch("spooled_responses") > before }
    @stage.open(1)
    2.times { slow_reader("/short") }

    assert_equal %w[/short /short], takes(0, 1).map(&:path)
  end

  def test_after_a_reader_was_cut_the_next_waits_a_moment
    crowded(lanes: 1, spool_total: 10 * MB)
    slow_reader("/large")
    @stage.finish(answer(9 * MB), keep: false)
    counts("cut_readers" => 1)
    slow_reader("/large")
    waiting(2)
    request(GET)
    light = @stage.take(0)
    assert_equal "/", light.path
    @stage.answer(light)

    assert_equal "/large", @stage.take(0).path
  end

  def test_no_worker_waits_for_a_reader_while_they_wait
    crowded(spool_total: 10 * MB)
    slow_reader("/large")
    heavy = take_from_either
    assert_equal "full", much(heavy, 30 * MB)
    counts("waiting_workers" => 1, "cut_readers" => 0)
    slow_reader("/large")

    wait_until { @stage.stats.fetch("cut_readers").positive? }
    counts("waiting_workers" => 0)
  end

  def test_when_the_queue_is_full_they_make_room
    crowded(max_queue: 2)
    slow_reader("/large")
    heavy = @stage.take(0)
    readers = Array.new(2) { |number| slow_reader("/large", from: "127.0.0.#{number + 2}").tap { waiting(number + 2) } }
    light = request(GET)
    @stage.answer(@stage.take(1 - heavy.lane))

    assert_equal "hello", body_of(light)
    refused = wait_until { readers.find { |reader| reader.wait_readable(0) } }
    assert_match(%r{\AHTTP/1.1 503 }, refused.readpartial(100))
    counts("shed_queue" => 1, "shed_queue_time" => 0)
  end

  def test_a_worker_that_dies_leaves_its_place_to_the_next
    crowded
    2.times { slow_reader("/large") }
    waiting(2)
    heavy = take_from_either
    @stage.ok("dead", heavy.lane, DIED)

    assert_equal "/large", @stage.take(1 - heavy.lane).path
  end

  private

  # Much is unread already, of an answer to this path.
  def crowded(path = "/large", lanes: 2, bytes: 9 * MB, **settings)
    stage(lanes: 1, response_memory: 64_000, response_total: 2 * MB, **settings)
    reader = slow_reader(path)
    @stage.finish(answer(bytes), keep: false)
    @stage.open(1) if lanes > 1
    @seen = @stage.stats.fetch("requests")
    reader
  end

  def taken_in_time
    client = request("GET /large HTTP/1.1\r\nhost: a\r\n\r\n")
    @stage.answer(@stage.take(0))
    assert_equal "hello", body_of(client)
  end

  def unread = @stage.stats.values_at("response_bytes", "spooled_responses").sum

  def waiting(count) = wait_until { @stage.stats.fetch("requests") == @seen + count }

  def takes(*lanes) = lanes.map { |lane| @stage.take(lane) }
end
