# frozen_string_literal: true

require "test_helper"
require "pando/config"
require_relative "../unit/http/support/each_mode"

# The bounds of a request that docs/http.md names, over real sockets, in direct mode
# and behind the reactor: what reaches a bound is taken, a byte or a field more is not.
class BoundsConformanceTest < Minitest::Test
  extend HTTPSupport::EachMode

  HOST = "Host: a\r\n"
  CHUNKED = "POST / HTTP/1.1\r\n#{HOST}Transfer-Encoding: chunked\r\n\r\n".freeze

  # Of a head.
  def self.line(rest) = "GET / HTTP/1.1\r\n#{HOST}#{rest}"

  # What has just so many bytes.
  def self.filled(before, bytes, behind)
    "#{before}#{"a" * (bytes - before.bytesize - behind.bytesize)}#{behind}"
  end

  def self.target(bytes) = "GET #{filled("/", bytes, "")} HTTP/1.1\r\n#{HOST}\r\n"
  def self.head(bytes) = filled("GET / HTTP/1.1\r\n#{HOST}X: ", bytes, "\r\n\r\n")
  def self.sized(bytes) = "POST / HTTP/1.1\r\n#{HOST}Content-Length: #{bytes}\r\n\r\n#{"x" * bytes}"
  def self.chunk(bytes) = "#{CHUNKED}#{bytes.to_s(16)}\r\n#{"x" * bytes}\r\n0\r\n\r\n"
  def self.digits(count) = "#{CHUNKED}#{"1".rjust(count, "0")}\r\nx\r\n0\r\n\r\n"
  def self.extensions(bytes) = "#{CHUNKED}1#{filled(";", bytes - 3, "")}\r\nx\r\n0;bc\r\n\r\n"
  def self.trailer(bytes) = "#{CHUNKED}0\r\n#{filled("X: ", bytes, "\r\n")}\r\n"

  # The settings are those of HTTPSupport::SETTINGS.
  BOUNDS = {
    "empty_lines" => [400, *[2, 3].map { |count| ("\r\n" * count) + line("\r\n") }],
    "method" => [501, *[32, 33].map { |size| "#{"A" * size} / HTTP/1.1\r\n#{HOST}\r\n" }],
    "max_target_bytes" => [414, target(512), target(513)],
    "max_header_bytes" => [431, head(4096), head(4097)],
    "max_headers" => [431, *[19, 20].map { |count| line("#{"X: a\r\n" * count}\r\n") }],
    "port" => [400, *%w[65535 65536].map { |port| "GET / HTTP/1.1\r\nHost: a:#{port}\r\n\r\n" }],
    "max_body_bytes" => [413, sized(100_000), sized(100_001)],
    "max_body_bytes_of_chunks" => [413, chunk(100_000), chunk(100_001)],
    "chunk_size" => [400, digits(15), digits(16)],
    "chunk_extensions" => [400, extensions(8192), extensions(8193)],
    "trailer_fields" => [400, trailer(8192), trailer(8193)]
  }.freeze

  BOUNDS.each do |name, (status, taken, refused)|
    in_each_mode name do
      serve { |env| [200, {}, [env["rack.input"].read.size.to_s]] }

      assert_equal([200, status], [taken, refused].map { |bytes| status_of(bytes) })
    end
  end

  # The greatest that the settings allow.
  in_each_mode "heads_of_a_mebibyte" do
    serve(max_header_bytes: 1 << 20, max_target_bytes: 65_536, max_headers: 1000) { [200, {}, []] }
    fields = "X: a\r\n" * 998

    assert_equal [200, 431], heads_of(1 << 20, fields)
    assert_equal 431, status_of("GET / HTTP/1.1\r\n#{HOST}#{fields}X: a\r\nX: a\r\n\r\n")
    assert_equal([200, 414], [65_536, 65_537].map { |bytes| status_of(self.class.target(bytes)) })
  end

  # A body may be that long if no setting says less; nobody sends it.
  in_each_mode "announced_bodies" do
    disk = direct? ? {} : { spool_total: 10**19 }
    serve(max_body_bytes: nil, **disk) { flunk "served" }
    assert_equal([100, 413], [10**18, (10**18) + 1].map { |bytes| announce(bytes) })
    @served.stop
    serve(max_body_bytes: Pando::Config.load([], env: {}).max_body_bytes) { flunk "served" }
    assert_equal([100, 413], [1 << 30, (1 << 30) + 1].map { |bytes| announce(bytes) })
  end

  in_each_mode "bodies_in_memory" do
    serve { |env| [200, {}, [env["rack.input"].class.to_s]] }
    head = "POST / HTTP/1.1\r\n#{HOST}Connection: close\r\nContent-Length: %d\r\n\r\n"
    most = direct? ? 1000 : 16_384 - format(head, 16_000).bytesize

    kinds = [most, most + 1].map { |size| answer_to(format(head, size) + ("x" * size), &:read)[/\w+\z/] }

    assert_equal %w[StringIO File], kinds
  end

  in_each_mode "streamed_bodies" do
    serve(stream_bodies: ["/"], max_body_bytes: 10) { |env| [200, {}, [env["rack.input"].read]] }

    assert_equal([200, 413], [10, 11].map { |bytes| status_of(self.class.sized(bytes)) })
    assert_equal([200, 413], [10, 11].map { |bytes| status_of(self.class.chunk(bytes)) })
  end

  # For two seconds; what comes then is not read any more.
  in_each_mode "who_is_refused_and_sends_on_is_closed_all_the_same" do
    serve { [200, {}, ["hello"]] }
    client = connect.tap { |one| one.write("bad\r\n\r\n") }

    assert_raises(Errno::EPIPE, Errno::ECONNRESET) { loop { client.write("x") && pause(0.05) } }
    assert_match(/hello\z/, ask)
  end

  private

  def heads_of(bytes, fields)
    before = "GET / HTTP/1.1\r\n#{HOST}#{fields}Y: "
    [bytes, bytes + 1].map { |size| status_of(self.class.filled(before, size, "\r\n\r\n")) }
  end

  def announce(bytes)
    status_of("POST / HTTP/1.1\r\n#{HOST}Expect: 100-continue\r\nContent-Length: #{bytes}\r\n\r\n")
  end

  def status_of(bytes) = answer_to(bytes) { |client| client.gets("\r\n")[/ (\d{3}) /, 1].to_i }

  # It may be refused before all is sent.
  def answer_to(bytes)
    client = @served.connect
    sender = Thread.new do
      client.write(bytes)
    rescue Errno::EPIPE, Errno::ECONNRESET
      nil
    end
    Timeout.timeout(60) { yield client }
  ensure
    sender&.join
    client&.close
  end
end
