# frozen_string_literal: true

require "test_helper"
require "socket"
require_relative "support/served_work"

# Clients that read their answers slowly or not at all, in direct mode.
class HTTPWorkReadersTest < Minitest::Test
  include HTTPSupport::Serving

  def test_a_reader_that_takes_nothing_is_dropped
    serve(write_timeout: 0.05) { [200, {}, ["x" * 50_000_000]] }
    socket = @served.connect
    socket.write("GET /large?secret HTTP/1.1\r\nHost: a\r\n\r\n")
    wait_until { @served.worker.called(:job_finished).any? }

    assert_raises(Errno::ECONNRESET) { socket.read }
    (client, request), = @served.worker.called(:reader_lost).map { |_, *told| told }
    assert_match(%r{\A127\.0\.0\.1, \d+ bytes/s\z}, client)
    assert_equal "GET /large", request
  ensure
    socket&.close
  end

  # It takes less in that time than makes the socket writable.
  def test_a_reader_that_takes_a_little_all_the_time_is_not_dropped
    Tempfile.create do |file|
      file.truncate(20_000_000)
      in_file = Struct.new(:to_path) { def each = raise }.new(file.path)
      bodies = { "/" => ["x" * 20_000_000], "/file" => in_file,
                 "/stream" => ->(stream) { stream.write("x" * 20_000_000) && stream.close } }
      serve(write_timeout: 1.0) { |env| [200, {}, bodies.fetch(env["PATH_INFO"])] }

      bodies.each_key { |path| assert_operator read_slowly(path, seconds: 2), :>=, 20_000_000 }
      assert_empty @served.worker.called(:reader_lost)
    end
  end

  # What it does with the error that a write raises is its own business.
  def test_an_application_that_rescues_the_loss_of_its_reader
    body = lambda do |stream|
      2.times { stream.write("x" * 50_000_000) }
    rescue IOError
      retry unless (@rescued = @rescued.to_i + 1) > 1
    end
    serve(write_timeout: 0.05) { [200, {}, body] }
    socket = @served.connect
    socket.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
    wait_until { @served.worker.called(:job_finished).any? }

    assert_equal 1, @served.worker.called(:reader_lost).size
  ensure
    socket&.close
  end

  def test_a_reader_that_takes_little_gets_all
    serve { [200, {}, ["x" * 5_000_000]] }
    socket = @served.connect
    socket.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
    size = 0
    while (piece = socket.read(50_000))
      size += piece.bytesize
    end

    assert_operator size, :>, 5_000_000
  ensure
    socket&.close
  end

  private

  # As fast as it can only after that time.
  # @return [Integer] bytes
  def read_slowly(path, seconds:)
    socket = Socket.new(:INET, :STREAM)
    socket.setsockopt(:SOCKET, :RCVBUF, 16_384)
    socket.connect(@served.listener.local_address)
    socket.write("GET #{path} HTTP/1.1\r\nHost: a\r\n\r\n")
    limit = Pando::Sys.now + seconds
    size = 0
    size += socket.readpartial(4096).bytesize and pause(0.04) while Pando::Sys.now < limit
    size + socket.read.bytesize
  ensure
    socket&.close
  end
end
