# frozen_string_literal: true

require "test_helper"
require "digest"
require "open3"
require_relative "support/reactor_case"
require_relative "support/slow_readers"

# Answers whose clients do not take them: where they wait, and what waits for them.
class HTTPReactorRoomTest < Minitest::Test
  include HTTPSupport::ReactorCase
  include HTTPSupport::SlowReaders

  def test_an_answer_of_any_length_is_taken_off_its_worker
    stage(lanes: 1)
    client = slow_reader
    taken = answer(20 * MB)
    @stage.finish(taken, keep: false)
    serves(0)

    assert_operator @stage.stats.fetch("spooled_responses"), :>, 10 * MB
    same_bytes HEAD + content(20 * MB), client.read
    counts("spooled_responses" => 0, "response_bytes" => 0, "cut_readers" => 0)
  end

  def test_the_space_of_a_client_that_goes_is_given_back
    stage(lanes: 1)
    client = slow_reader
    answer(20 * MB)
    count_above("spooled_responses", 10 * MB)
    reset(client)

    counts("spooled_responses" => 0, "response_bytes" => 0, "connections" => 0)
    wait_until { spool_files.empty? }
  end

  def test_the_space_of_what_was_sent_is_given_back_before_the_end
    stage(lanes: 1)
    client = slow_reader
    taken = answer(20 * MB)
    before = @stage.stats.fetch("spooled_responses")
    client.read(12 * MB)

    wait_until { @stage.stats.fetch("spooled_responses") < before - (4 * MB) }
    @stage.finish(taken, keep: false)
    same_bytes((HEAD + content(20 * MB)).byteslice((12 * MB)..), client.read)
  end

  def test_memory_spool_and_a_workers_file_keep_their_order
    stage(lanes: 1)
    client = slow_reader
    taken = answer(9 * MB)
    Tempfile.create("pando") do |file|
      file.write("f" * 100_000)
      file.flush
      @stage.send_file(taken, file.path, 100_000)
    end
    @stage.data(taken, "behind")
    count_above("spooled_responses", MB)
    reader = Thread.new { client.read }
    @stage.finish(taken, keep: false)

    same_bytes "#{HEAD}#{content(9 * MB)}#{"f" * 100_000}behind", reader.value
  end

  def test_what_is_sent_behind_a_spooled_part_reaches_a_client_that_has_taken_all
    stage(lanes: 1)
    client = slow_reader
    taken = answer(9 * MB)
    same_bytes HEAD + content(9 * MB), client.read(HEAD.bytesize + (9 * MB))
    @stage.data(taken, "event")

    assert_equal "event", client.readpartial(100)
    count("spooled_responses", 0)
  end

  def test_the_memory_of_finished_answers_has_a_bound
    stage(lanes: 1, response_memory: 100_000, response_total: 600_000)
    clients = Array.new(20) { slow_reader }
    clients.each { answer(8 * MB).then { |taken| @stage.finish(taken, keep: false) } }

    assert_operator @stage.stats.fetch("response_bytes"), :<=, 600_000 + (20 * 4096)
    same_bytes HEAD + content(8 * MB), clients.last.read
  end

  def test_when_all_is_full_half_of_the_workers_wait_and_the_slowest_reader_is_cut
    stage(lanes: 4, response_memory: 64_000, spool_total: 4 * MB)
    clients = Array.new(4) { slow_reader }
    requests = Array.new(4) { |lane| @stage.take(lane) }
    requests.first(2).each { |taken| assert_equal "full", much(taken, 9 * MB) }
    counts("waiting_workers" => 2, "cut_readers" => 0)
    requests.drop(2).each { |taken| much(taken, 9 * MB) }
    wait_until { @stage.stats.fetch("cut_readers").positive? }

    assert_operator @stage.stats.fetch("waiting_workers"), :<=, 2
    assert_operator @stage.stats.fetch("spooled_responses"), :<=, 4 * MB
    assert(clients.any? { |client| cut?(client) })
    assert_equal Socket::AF_INET, @stage.stats.fetch("cut_family")
    assert_equal "127.0.0.1", [@stage.stats.fetch("cut_network")].pack("Q").bytes.first(4).join(".")
  end

  def test_a_single_worker_never_waits_when_all_is_full
    stage(lanes: 1, response_memory: 64_000, spool_total: 4 * MB)
    first = slow_reader
    answer(4 * MB).then { |taken| @stage.finish(taken, keep: false) }
    slow_reader
    taken = @stage.take(0)
    assert_equal "ok", much(taken, 5 * MB)
    @stage.finish(taken, keep: false)
    serves(0)

    assert cut?(first)
  end

  def test_a_full_disk_makes_the_workers_wait
    stage(lanes: 2, response_memory: 64_000, response_total: 200_000, spool_directory: "/proc/self/nowhere")
    client = slow_reader
    assert_equal "full", much(taken = @stage.take(0), 9 * MB)
    counts("waiting_workers" => 1, "cut_readers" => 0, "spooled_responses" => 0)
    assert_operator @stage.stats.fetch("spool_failed"), :>, 0
    reader = Thread.new { client.read }
    @stage.finish(taken, keep: false)

    assert_operator reader.value.bytesize, :>, 200_000
  end

  # Its own client takes nothing meanwhile.
  def test_a_worker_goes_on_as_soon_as_another_client_leaves_memory
    stage(lanes: 2, response_memory: 64_000, response_total: 600_000, spool_directory: "/proc/self/nowhere")
    other = slow_reader
    answer(500_000).then { |taken| @stage.finish(taken, keep: false) }
    count_above("response_bytes", 200_000)
    slow_reader
    assert_equal "full", much(@stage.take(0), 9 * MB)
    counts("waiting_workers" => 1, "connections" => 2)
    reset(other)

    counts("waiting_workers" => 0, "connections" => 1, "cut_readers" => 0)
  end

  # The client takes nothing meanwhile, and the waiting itself costs no memory.
  def test_a_worker_goes_on_as_soon_as_the_disk_takes_bytes_again
    Dir.mktmpdir("pando") do |folder|
      client, taken, sent = waiting_for("#{folder}/spool")
      before = @stage.stats
      wait_until { @stage.stats.fetch("spool_failed") > before.fetch("spool_failed") + 1 }
      counts("waiting_workers" => 1, "response_bytes" => before.fetch("response_bytes"))
      Dir.mkdir("#{folder}/spool")
      counts("waiting_workers" => 0, "connections" => 1)
      @stage.finish(taken, keep: false)

      same_bytes HEAD + sent, client.read
    end
  end

  # The reactor has nothing there that would make it look.
  def test_a_disk_that_others_have_filled_is_used_again_when_there_is_room
    small_disk do |folder|
      ballast = File.join(folder, "ballast")
      fill(ballast)
      stage(lanes: 1, body_memory: 0, spool_directory: folder)
      assert_match(%r{\AHTTP/1.1 503 }, request(sized_post("x" * MB)).read)
      File.unlink(ballast)

      taken = nil
      wait_until do
        request(sized_post("x" * MB))
        taken = @stage.take(0, patience: 0.1)
      end
      count_above("spooled_bodies", MB - 1)
      @stage.answer(taken)
    end
  end

  # The file opens, and takes nothing.
  def test_a_disk_that_refuses_bytes_costs_no_descriptor
    small_disk do |folder|
      stage(lanes: 1, spool_total: MB, spool_directory: folder)
      fill(File.join(folder, "ballast"))
      client = slow_reader
      answer(9 * MB)
      count_above("spool_failed", 0)
      reset(client)

      counts("connections" => 0, "response_bytes" => 0, "spooled_responses" => 0)
      wait_until { spool_files.empty? }
    end
  end

  def test_what_was_written_and_not_recorded_goes_with_its_connection
    output, status = Open3.capture2e(Support::CProgram.path("overflow", HTTPSupport::ReactorStage::SOURCES))

    assert_predicate status, :success?, output
    assert_includes output, "all hold"
  end

  def test_a_request_has_the_disk_before_a_slow_reader
    stage(lanes: 2, body_memory: 0, spool_total: 5 * MB)
    slow_reader
    answer(4 * MB)
    count_above("spooled_responses", MB)
    client = request(sized_post("x" * 4_500_000))
    taken = @stage.take(1)
    @stage.answer(taken)
    assert_equal "hello", body_of(client)

    counts("cut_readers" => 1, "shed_spool" => 0)
  end

  def test_requests_beyond_the_disk_are_refused_the_longest_first
    stage(lanes: 2, body_memory: 0, spool_total: MB)
    longest = request(sized_post("x" * 900_000)[0..-2])
    count_above("spooled_bodies", 890_000)
    others = [sized_post("x" * 200_000), chunked_post("x" * 200_000)].map { |text| request(text) }
    assert_match(%r{\AHTTP/1.1 503 }, longest.readpartial(100))
    2.times { @stage.answer(@stage.take(0)) }
    assert_equal(%w[hello hello], others.map { |client| body_of(client) })
    counts("shed_spool" => 1, "shed_resources" => 0, "spooled_bodies" => 0)

    request(sized_post("x" * 300_000)[0..-2])
    count_above("spooled_bodies", 290_000)
    assert_match(%r{\AHTTP/1.1 503 }, request(sized_post("x" * 900_000)).readpartial(100))
    counts("shed_spool" => 2, "spooled_bodies" => 299_999)
  end

  def test_a_body_that_is_announced_takes_nobodys_place
    stage(lanes: 1, body_memory: 0, spool_total: MB)
    reader = slow_reader
    taken = answer(8 * MB / 10)
    4.times { request(sized_post("x" * MB)[0..200]) }
    client = request(sized_post("x" * 100_000))
    @stage.finish(taken, keep: false)
    @stage.answer(@stage.take(0))

    assert_equal "hello", body_of(client)
    counts("shed_spool" => 0, "cut_readers" => 0)
    same_bytes HEAD + content(8 * MB / 10), reader.read
  end

  def test_a_body_that_is_larger_than_the_disk_we_have_is_too_large
    stage(lanes: 1, spool_total: MB)
    chunked = "POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n"
    [chunked.sub("transfer-encoding: chunked", "content-length: #{MB + 1}"),
     "#{chunked}#{(MB + 1).to_s(16)}\r\n",
     "#{chunked}3e8\r\n#{"x" * 1000}\r\n#{(MB - 999).to_s(16)}\r\n"].each do |text|
      assert_match(%r{\AHTTP/1.1 413 }, request(text).readpartial(100))
    end
    counts("refused_spool_size" => 3, "refused_body_size" => 0, "shed_spool" => 0)

    [sized_post("x" * MB), chunked_post("x" * MB)].each do |text|
      client = request(text)
      @stage.answer(@stage.take(0))
      assert_equal "hello", body_of(client)
    end
  end

  # It may be kept, if not now; and what a worker reads itself is not kept at all.
  def test_a_body_that_needs_no_disk_may_be_larger_than_it
    stage(lanes: 1, spool_total: MB, body_memory: 2 * MB, stream_paths: "/up")
    client = request(sized_post("x" * 2 * MB))
    @stage.answer(@stage.take(0))
    assert_equal "hello", body_of(client)
    request(sized_post("x" * 3 * MB).sub("/", "/up"))

    assert_predicate @stage.take(0), :streamed?
  end

  private

  # A file system of four mebibytes.
  def small_disk
    Dir.mktmpdir("pando") do |folder|
      skip("no file system can be mounted here") unless
        Process.uid.zero? && system("mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", folder, err: File::NULL)
      begin
        yield folder
      ensure
        system("umount", "--lazy", folder)
      end
    end
  end

  def fill(path)
    File.open(path, "wb") { |file| loop { file.syswrite("x" * 65_536) } }
  rescue Errno::ENOSPC
    nil
  end

  # A worker that waits for its client, as there is no spool.
  def waiting_for(directory)
    stage(lanes: 2, response_memory: 64_000, response_total: 200_000, spool_directory: directory)
    client = slow_reader
    @stage.data(taken = @stage.take(0), HEAD)
    fill_ring(taken, sent = +"")
    count("waiting_workers", 1)
    [client, taken, sent]
  end

  def content(bytes)
    Array.new((bytes / 1000) + 1) { |number| (number % 251).chr * 1000 }.join.byteslice(0, bytes).b
  end

  # Without a page of them in the message.
  def same_bytes(expected, found)
    assert_equal [expected.bytesize, Digest::SHA256.hexdigest(expected)],
                 [found.bytesize, Digest::SHA256.hexdigest(found)]
  end

  def spool_files
    Dir["/proc/#{@stage.tell("pid")}/fd/*"].map { |path| target(path) }.grep(/deleted/).grep_v(/memfd/)
  end

  def target(path)
    File.readlink(path)
  rescue Errno::ENOENT # closed meanwhile
    ""
  end
end
