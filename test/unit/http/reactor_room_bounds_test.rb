# frozen_string_literal: true

require "test_helper"
require "tmpdir"
require_relative "support/reactor_case"
require_relative "support/slow_readers"

# How much there is room for, of answers whose clients do not take them, and of the disk.
class HTTPReactorRoomBoundsTest < Minitest::Test
  include HTTPSupport::ReactorCase
  include HTTPSupport::SlowReaders

  # --- memory ---

  def test_an_answer_waits_in_memory_up_to_its_bound
    stage(lanes: 1, response_memory: MB)
    client = slow_reader
    finished(MB / 2)
    serves(0)
    assert_operator @stage.stats.fetch("response_bytes"), :>, MB / 4
    count("spooled_responses", 0)
    assert_equal HEAD.bytesize + (MB / 2), client.read.bytesize

    slow_reader
    answer(9 * MB)
    count_above("spooled_responses", 7 * MB)
    assert_includes (MB - 60_000)..(MB + 20_000), @stage.stats.fetch("response_bytes")
  end

  # TCP_NOTSENT_LOWAT; and what is on its way is little, for the client's buffer is small.
  def test_in_the_kernel_waits_little
    stage(lanes: 1)
    client = slow_reader
    answer(9 * MB)
    count_above("spooled_responses", 8 * MB)

    assert_includes 32_768..((128 << 10) + 16_384), in_the_kernel_for(client)
  end

  def test_in_the_kernel_waits_little_of_many_pieces_too
    stage(lanes: 1)
    client = slow_reader
    taken = @stage.take(0)
    @stage.data(taken, HEAD)
    400.times { @stage.data(taken, "x" * 10_000) }
    count_above("spooled_responses", 3 * MB)

    assert_includes 32_768..((128 << 10) + 16_384), in_the_kernel_for(client)
  end

  # --- which client is cut ---

  def test_the_slowest_reader_is_the_one_with_the_least_rate
    stage(lanes: 1, response_memory: 64_000, spool_total: 17 * MB)
    readers = Array.new(3) { slow_reader }
    3.times { finished(5 * MB) }
    readers.values_at(0, 2).each { |reader| reader.read(MB) }
    pause 2.1 # so that their rates count
    slow_reader
    finished(5 * MB)

    counts("cut_readers" => 1)
    assert cut?(readers[1])
    assert_equal([HEAD.bytesize + (4 * MB)] * 2, readers.values_at(0, 2).map { |reader| reader.read.bytesize })
  end

  def test_those_that_have_begun_a_moment_ago_come_last
    stage(lanes: 1, response_memory: 64_000, spool_total: 8 * MB)
    reader = slow_reader
    finished(5 * MB)
    reader.read(MB)
    pause 2.1
    asked_at = now
    slow_reader
    finished(5 * MB)
    counts("cut_readers" => 1)
    skip("that moment was too long") if now - asked_at >= 2

    assert cut?(reader), "though the other has taken nothing at all"
  end

  # --- the disk ---

  # Those that connections leave.
  def test_half_of_the_descriptors_may_be_files_of_answers
    stage(lanes: 1, files: 240, max_connections: 200, response_memory: 16_384)
    assert_files_and_cut_readers_of(20, 20, 0)
    assert_files_and_cut_readers_of(1, 20, 1)
  end

  def test_a_disk_that_takes_nothing_is_tried_again_after_a_second
    Dir.mktmpdir do |folder|
      stage(lanes: 1, response_memory: 64_000, response_total: 60 * MB, spool_directory: "#{folder}/later")
      slow_reader
      began_at = now
      taken = answer(MB)
      60.times do
        @stage.data(taken, "x" * 10_000)
        pause 0.01
      end
      assert_includes 1..(now - began_at + 2), @stage.stats.fetch("spool_failed")
      count("spooled_responses", 0)
      Dir.mkdir("#{folder}/later")

      wait_until do
        @stage.data(taken, "x" * 30_000)
        @stage.stats.fetch("spooled_responses").positive?
      end
    end
  end

  def test_bodies_fill_the_disk_to_the_last_byte
    stage(lanes: 1, body_memory: 0, spool_total: MB)
    longest = request(sized_post("x" * 900_000)[0..-2])
    count("spooled_bodies", 899_999)
    client = request(sized_post("x" * 100_001))
    @stage.answer(@stage.take(0))
    assert_equal "hello", body_of(client)

    counts("spooled_bodies" => 899_999, "shed_spool" => 0)
    request(sized_post("x" * 100_002))
    assert_match(%r{\AHTTP/1.1 503 }, longest.readpartial(100))
    count("shed_spool", 1)
  end

  private

  def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

  def finished(bytes) = answer(bytes).then { |taken| @stage.finish(taken, keep: false) }

  # @return [Integer] bytes that were given to it for this client, and not acknowledged (proc(5))
  def in_the_kernel_for(client)
    port = format("%04X", client.local_address.ip_port)
    File.read("/proc/net/tcp")[/^ *\d+: \h+:\h+ \h+:#{port} 01 (\h+):/, 1].hex
  end

  # Files are closed in the background.
  def assert_files_and_cut_readers_of(readers, files, cut)
    readers.times do
      slow_reader
      finished(400_000)
    end
    serves(0)
    found = nil
    wait_until(message: -> { "#{files} files, #{cut} cut; there are #{found}" }) do
      (found = [spool_files, @stage.stats.fetch("cut_readers")]) == [files, cut]
    end
  end

  # @return [Integer] how many there are
  def spool_files
    Dir["/proc/#{@stage.tell("pid")}/fd/*"].count do |path|
      File.readlink(path).match?(%r{\A/(?!memfd:).* \(deleted\)\z})
    rescue Errno::ENOENT # closed meanwhile
      false
    end
  end
end
