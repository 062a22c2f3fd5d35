# frozen_string_literal: true

require "test_helper"
require "pando/config"
require "pando/http/reactor_setup"
require_relative "support/served_queue"

# Bounds that take the reactor as it is in a server: its process, its settings, and a worker that knows of them.
class HTTPReactorLimitsTest < Minitest::Test
  APP = ->(env) { [200, {}, [env["rack.input"].read.bytesize.to_s]] }
  GET = "GET / HTTP/1.1\r\nHost: a\r\n\r\n"

  def teardown
    @served&.stop
  end

  def serve(**settings)
    @served = HTTPSupport::ServedQueue.new(APP, **settings).start
  end

  def test_the_last_request_of_a_connection
    serve(max_keepalive_requests: 2)
    client = @served.connect
    client.write(GET * 3)
    answers = client.read.split(%r{(?=HTTP/1\.1 )}).map { |text| HTTPSupport::Answer.new(text) }

    assert_equal([[200, nil], [200, "close"]], answers.map { |answer| [answer.status, answer["connection"]] })
  ensure
    client&.close
  end

  # RLIMIT_FSIZE
  def test_a_body_may_be_as_long_as_a_file
    skip("there is no prlimit") unless system("prlimit", "--version", out: File::NULL)
    serve
    assert system("prlimit", "--pid=#{@served.reactor}", "--fsize=20000:20000")
    chunked = "Transfer-Encoding: chunked\r\n"

    assert_equal %w[20000 20000], [@served.post("x" * 20_000), @served.post(chunks(20_000), chunked)].map(&:body)
    assert_equal [503, 503], [@served.post("x" * 20_001), @served.post(chunks(20_001), chunked)].map(&:status)
    assert_equal "20000", @served.post("x" * 20_000).body
  end

  def test_buffers_have_a_tenth_of_the_memory
    settings = Pando::HTTP::ReactorSettings.new(Pando::Config.load([], env: {}))

    assert_equal Pando::Sys::Memory.limit / 10, settings.buffer_memory
  end

  private

  def chunks(bytes) = "#{bytes.to_s(16)}\r\n#{"x" * bytes}\r\n0\r\n\r\n"
end
