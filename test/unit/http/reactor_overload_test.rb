# frozen_string_literal: true

require "test_helper"
require "open3"
require_relative "support/reactor_case"

# Limits that keep the reactor's work and memory bounded.
class HTTPReactorOverloadTest < Minitest::Test
  include HTTPSupport::ReactorCase

  # --- connections ---

  def test_connections_of_one_address_have_a_number
    stage(max_per_address: 2)
    kept = Array.new(2) { request(GET) }
    assert_match(%r{\AHTTP/1.1 503 .*\r\nretry-after: 7\r\n.*\r\nconnection: close\r\n}m, connect.read)

    other = connect_from("127.0.0.2").tap { |client| client.write(GET) }
    3.times { |lane| @stage.take(lane % 2).then { |taken| @stage.answer(taken) } }
    [*kept, other].each { |client| assert_equal "hello", body_of(client) }

    kept.each(&:close)
    count("connections", 1)
    serves(0)
    count("shed_address", 1)
  end

  def test_an_address_far_beyond_its_number_gets_no_answer
    stage(max_per_address: 1)
    served = request(GET)
    clients = Array.new(20) { connect }
    answers = clients.map { |client| answer_or_reset(client) }
    @stage.answer(@stage.take(0))

    assert_equal "hello", body_of(served)
    assert_includes answers, ""
    assert(answers.all? { |answer| answer.empty? || answer.start_with?("HTTP/1.1 503 ") })
    count("shed_address", 20)
  end

  def test_the_table_of_addresses
    program = Support::CProgram.path("addresses", %w[http/reactor_addresses.c])
    output, status = Open3.capture2e(program, "300000", "1")

    assert_predicate status, :success?, output
    assert_equal "all hold\n", output
  end

  def test_an_idle_connection_makes_room_unless_it_asks_for_something
    stage(max_connections: 2)
    clients = Array.new(2) { request(GET) }
    clients.each do |client|
      @stage.answer(@stage.take(0))
      body_of(client)
    end
    count("idle", 2)
    @stage.ok("signal", Signal.list["STOP"])
    newcomer = request(GET)
    clients.first.write(GET)
    @stage.ok("signal", Signal.list["CONT"])
    2.times { @stage.answer(@stage.take(0)) }

    [newcomer, clients.first].each { |client| assert_equal "hello", body_of(client) }
    assert_equal "", clients.last.read
    count("evicted", 1)
  end

  def test_idle_connections_without_end_make_room_too
    stage(max_connections: 1, idle_timeout: 0)
    idle = request(GET)
    @stage.answer(@stage.take(0))
    body_of(idle)
    serves(0)

    assert_equal "", idle.read
  end

  # --- the answer ---

  def test_who_still_sends_can_read_the_answer
    stage(max_connections: 1, max_body_bytes: 10, max_target_bytes: 50, max_header_bytes: 1000)
    rest = "x" * 300_000
    { "bad\r\n#{rest}" => 400, "GET /#{rest}" => 414, "GET / HTTP/1.1\r\nx: #{rest}" => 431,
      "CONNECT a:1 HTTP/1.1\r\nhost: a:1\r\n\r\n#{rest}" => 501, "GET / HTTP/2.0\r\n#{rest}" => 505,
      "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 300000\r\n\r\n#{rest}" => 413 }.each do |text, status|
      assert_match(%r{\AHTTP/1.1 #{status} .*\r\nconnection: close\r\n\r\n#{status} .*\n\z}m, request(text).read)
      count("connections", 0)
    end
    request("GET")
    assert_match(%r{\AHTTP/1.1 503 .*\nretry-after: 7\r\n}m, request(GET + rest).read)
  end

  # --- time ---

  def test_heads_that_trickle_are_refused
    stage(header_timeout: 300)
    client = request("GET / HTTP/1.1\r\nx: ")

    assert_match(%r{\AHTTP/1.1 408 }, trickle(client, "x"))
    count("refused_header_time", 1)
  end

  def test_the_next_head_has_its_time_too
    stage(header_timeout: 200)
    client = request(GET)
    @stage.answer(@stage.take(0))
    assert_equal "hello", body_of(client)
    client.write("GET /")

    assert_match(%r{\AHTTP/1.1 408 }, client.read)
  end

  def test_empty_lines_do_not_keep_a_connection
    stage(header_timeout: 200, idle_timeout: 200)
    client = request(GET)
    @stage.answer(@stage.take(0))
    assert_equal "hello", body_of(client)

    assert_match(%r{\AHTTP/1.1 4\d\d }, trickle(client, "\r\n"))
  end

  # --- memory ---

  def test_heads_that_are_not_whole_cost_little_more
    stage(sanitizers: [], max_connections: 2000)
    before = own_memory
    500.times { request("GET / HTTP/1.1\r\nhost: a\r\nx") }
    count("connections", 500)

    assert_operator (own_memory - before) / 500, :<, 10_000
  end

  # What a connection has beyond this while a request is read or an answer sent goes back when it is idle.
  def test_idle_connections_cost_little
    stage(sanitizers: [], max_connections: 2000)
    grow(50) # what is made once
    before = own_memory
    grow(500)
    count("idle", 550)

    assert_operator (own_memory - before) / 500, :<, 1024
  end

  def test_a_body_is_in_memory_up_to_its_bound
    stage(body_memory: 30_000)
    request(sized_post("x" * 30_000)[0..-2])
    wait_until { request_files == { memory: 1 } }
    request(sized_post("x" * 30_001)[0..-2])
    wait_until { request_files == { memory: 1, disk: 1 } }
    request(chunked_post("x" * 17_000)[0..-2])
    wait_until { request_files == { memory: 1, disk: 2 } }
  end

  def test_bodies_that_the_disk_does_not_take_are_refused
    stage(body_memory: 20_000, spool_directory: "/proc/self/nowhere")
    assert_match(%r{\AHTTP/1.1 503 }, request(sized_post("x" * 20_001)).readpartial(100))
    counts("shed_resources" => 1, "shed_spool" => 0)
    client = request(sized_post("x" * 20_000))
    @stage.answer(@stage.take(0))

    assert_equal "hello", body_of(client)
  end

  def test_bodies_in_memory_take_three_quarters_of_the_bound_together
    stage(body_memory: 30 << 20, buffer_memory: 170 << 20)
    post = "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: #{30 << 20}\r\n\r\nx"
    clients = Array.new(6) { request(post) }
    wait_until { request_files.values.sum == 6 }
    assert_equal({ memory: 4, disk: 2 }, request_files)

    clients.each { |client| reset(client) }
    wait_until { request_files.empty? }
    request(post)
    wait_until { request_files == { memory: 1 } }
  end

  # Nobody is turned away without a word, nor without being counted.
  def test_clients_for_whom_there_is_no_memory_are_told
    skip("there is no prlimit") unless system("prlimit", "--version", out: File::NULL)
    stage(sanitizers: [], max_connections: 2000)
    serves(0) # what it takes once it has
    reset(@clients.last)
    count("connections", 0)
    limit_memory
    begin
      600.times { connect } # each takes a record, of which there is room for some
      wait_until { @stage.stats["accepted"] == 601 }
      spoken = Array.new(5) { request(GET) }
      wait_until { @stage.stats.values_at("shed_resources", "connections").sum == 605 } # it has told them
      told = wait_until { told_clients } # it counts before it writes
      answers = told.to_h { |client| [client, client.read] }
    ensure
      limit_memory("unlimited")
    end

    assert_equal(["HTTP/1.1 503 Service Unavailable"], answers.values.map { |text| text[/\A[^\r]*/] }.uniq)
    assert_equal(spoken, spoken & told)
    counts("shed_resources" => told.size, "connections" => 605 - told.size)
    serves(1)
  end

  # @return [Array<Socket>, nil] nil: there are not as many as the reactor has counted
  def told_clients
    told = @clients.select { |client| client.wait_readable(0) }
    told if told.size == @stage.stats["shed_resources"]
  end

  def test_an_answer_for_which_there_is_no_memory_is_cut_off
    skip("there is no prlimit") unless system("prlimit", "--version", out: File::NULL)
    stage(sanitizers: [], lanes: 1, spool_total: 0, response_memory: 64 << 20)
    client = request(GET)
    taken = @stage.take(0)
    @stage.data(taken, "HTTP/1.1 200 OK\r\n\r\n")
    limit_memory
    begin
      @stage.tell("much", taken.id, 20_000_000)
      count("shed_resources", 1)
    ensure
      limit_memory("unlimited")
    end

    assert_raises(Errno::ECONNRESET) { client.read }
    serves(0)
  end

  private

  # Its address space may not grow, but its stack a little.
  def limit_memory(most = nil)
    pid = @stage.tell("pid")
    most ||= (Integer(File.read("/proc/#{pid}/statm").split.first) * 4096) + 65_536
    assert(system("prlimit", "--pid=#{pid}", "--as=#{most}:"))
  end

  def request_files
    pid = @stage.tell("pid")
    Dir["/proc/#{pid}/fd/*"].filter_map do |path|
      case File.readlink(path)
      when /pando-request/ then :memory
      when %r{/tmp/.*deleted} then :disk
      end
    rescue Errno::ENOENT
      nil
    end.tally
  end

  def connect_from(address)
    TCPSocket.new("127.0.0.1", @listener.addr[1], address, 0).tap { |client| @clients << client }
  end

  def answer_or_reset(client)
    client.read
  rescue Errno::ECONNRESET
    ""
  end

  def grow(number)
    number.times do
      client = request(GET)
      @stage.answer(@stage.take(0))
      body_of(client)
    end
  end

  def own_memory
    File.read("/proc/#{@stage.tell("pid")}/smaps_rollup")
        .scan(/^Private_(?:Clean|Dirty):\s+(\d+) kB/).flatten.sum { |kilobytes| Integer(kilobytes) * 1024 }
  end
end
