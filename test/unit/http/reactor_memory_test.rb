# frozen_string_literal: true

require "test_helper"
require_relative "support/reactor_case"

# The bound of all buffers together, and what becomes of their memory.
class HTTPReactorMemoryTest < Minitest::Test
  include HTTPSupport::ReactorCase

  MIB = 1 << 20
  LARGE = "GET / HTTP/1.1\r\nhost: a\r\nx: #{"y" * 60_000}".freeze

  def test_heads_beyond_the_bound_are_refused_and_small_ones_are_not
    stage(buffer_memory: 4 * MIB)
    clients = Array.new(100) { request(LARGE) }
    wait_until { clients.any? { |client| answered?(client, 503) } }
    serves(0)

    assert_operator @stage.stats.fetch("head_bytes"), :<=, 4 * MIB
    assert_operator @stage.stats.fetch("shed_memory"), :>, 0
    count("shed_resources", 0)
  end

  def test_memory_of_a_head_that_is_being_read
    stage(max_header_bytes: 17_000)
    request("GET / HTTP/1.1\r\nhost: a\r\nx")
    count("head_bytes", 4096 + 4096)
    request("GET / HTTP/1.1\r\nhost: a\r\nx: #{"y" * 16_500}")

    wait_until { @stage.stats.fetch("head_bytes") > 50_000 }
    assert_operator @stage.stats.fetch("head_bytes") - 8192, :<=, (4 * 17_000) + 4096
  end

  def test_memory_of_a_head_that_may_have_many_fields
    { 200 => 4096, 1000 => 65_536 }.each do |fields, bytes|
      stage(max_headers: fields)
      request("GET / HTTP/1.1\r\nhost: a\r\nx")
      count("head_bytes", 4096 + bytes)
      @stage.quit
    end
  end

  def test_memory_of_a_request_whose_body_is_in_a_file
    stage
    [sized_post("x" * 300_000), chunked_post("x" * 300_000)].each do |text|
      client = request(text[0..-2])
      wait_until { @stage.stats.fetch("spooled_bodies") > 290_000 }
      assert_operator @stage.stats.fetch("head_bytes"), :<=, 16_384
      client.write(text[-1])
      @stage.answer(@stage.take(0))
      assert_equal "hello", body_of(client)
      counts("spooled_bodies" => 0, "head_bytes" => 0)
    end
  end

  def test_a_new_head_takes_the_place_of_the_slowest
    stage(buffer_memory: MIB, max_headers: 20)
    slow = Array.new(200) { request("GET /slow HTT") }
    wait_until { @stage.stats.fetch("shed_memory").positive? }
    serves(0)

    assert answered?(slow.first, 503)
    refute answered?(slow.last, 503)
  end

  def test_a_slow_body_makes_room_too
    stage(buffer_memory: MIB, max_headers: 20)
    slow = Array.new(300) { request("POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 4000\r\n\r\nx") }
    wait_until { @stage.stats.fetch("shed_memory").positive? }
    serves(0)

    assert answered?(slow.first, 503)
  end

  def test_bodies_beyond_the_bound_wait_on_the_disk
    stage(buffer_memory: 2 * MIB)
    clients = Array.new(30) { request(sized_post("x" * 100_000)[0..-2]) }
    wait_until { @stage.stats.fetch("spooled_bodies").positive? }
    assert_operator @stage.stats.fetch("body_bytes"), :<=, 1.5 * MIB
    wait_until { @stage.stats.values_at("body_bytes", "spooled_bodies").sum >= 30 * 99_999 }
    clients.each do |client|
      client.write("x")
      @stage.answer(@stage.take(0))

      assert_equal "hello", body_of(client)
    end
    counts("body_bytes" => 0, "spooled_bodies" => 0, "shed_memory" => 0)
  end

  def test_what_waits_on_a_tmpfs_counts
    stage(buffer_memory: 2 * MIB, spool_in_memory: 1)
    clients = Array.new(30) { request(sized_post("x" * 100_000)[0..-2]) }
    wait_until { clients.any? { |client| answered?(client, 503) } }

    assert_operator @stage.stats.values_at("body_bytes", "spooled_bodies", "head_bytes").sum, :<=, 2 * MIB
    count("spooled_bodies", 0)
  end

  def test_memory_goes_back_when_the_clients_have_left
    stage(sanitizers: [], buffer_memory: 128 * MIB)
    serves(0)
    before = resident
    700.times { request(LARGE) }
    wait_until { resident > before + (40 * MIB) }
    @clients.dup.each { |client| reset(client) }

    wait_until { resident < before + (6 * MIB) }
  end

  def test_answers_share_the_bound_with_heads
    stage(lanes: 1, buffer_memory: 2 * MIB, response_memory: 4 * MIB, response_total: 4 * MIB)
    client = request(GET)
    taken = @stage.take(0)
    @stage.data(taken, "HTTP/1.1 200 OK\r\n\r\n")
    assert_equal "ok", @stage.tell("much", taken.id, 20_000_000)

    assert_includes MIB..(1.5 * MIB), @stage.stats.fetch("response_bytes")
    assert_operator @stage.stats.fetch("spooled_responses"), :>, 0
    reset(client)
  end

  private

  def answered?(client, status)
    client.wait_readable(0) && client.recv_nonblock(20, Socket::MSG_PEEK).start_with?("HTTP/1.1 #{status} ")
  rescue IO::WaitReadable, Errno::ECONNRESET
    false
  end

  def resident
    File.read("/proc/#{@stage.tell("pid")}/status")[/^VmRSS:\s+(\d+)/, 1].to_i * 1024
  end
end
