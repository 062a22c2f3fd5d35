# frozen_string_literal: true

require "test_helper"
require "json"
require "support/servers"

# What monitoring services and autoscalers read of a request's wait, while its client uploads slowly.
class QueueTimeTest < Minitest::Test
  include Support::Servers

  APP = <<~RUBY
    run lambda { |env|
      now = Process.clock_gettime(Process::CLOCK_REALTIME, :float_millisecond)
      [200, {}, [JSON.generate(env.slice("HTTP_X_REQUEST_START", "puma.request_body_wait", "pando.queue_time")
                                  .merge("now" => now))]]
    }
  RUBY

  # @return [Array(Hash, Float)] the environment that the application has seen, and the time (in ms since the epoch)
  #   just before the request became complete
  def upload(fields = "")
    @server.connect.then do |socket|
      socket.write("POST / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n#{fields}content-length: 100000\r\n\r\n")
      9.times do
        socket.write("x" * 10_000)
        socket.wait_readable(0.04) # an upload that takes its time
      end
      last = now
      socket.write("x" * 10_000)
      [JSON.parse(socket.read.split("\r\n\r\n", 2).last), last]
    end
  end

  def now = Process.clock_gettime(Process::CLOCK_REALTIME, :float_millisecond)

  def setup = @server = serve(app: "require 'json'\n#{APP}", config: "workers 1\nrefork false\n")

  def test_without_a_proxy
    seen, last = upload
    stamp = seen["HTTP_X_REQUEST_START"].to_i

    assert_operator stamp, :>=, last.floor - 1
    assert_operator stamp + (seen["pando.queue_time"] * 1000), :<=, seen["now"] + 1
    refute_includes seen, "puma.request_body_wait", "services would subtract it from the time since our stamp"
  end

  def test_beside_the_stamp_of_a_proxy
    stamp = now.to_i
    seen, = upload("x-request-start: t=#{stamp}\r\n")

    assert_equal "t=#{stamp}", seen["HTTP_X_REQUEST_START"]
    assert_operator seen["puma.request_body_wait"], :>=, 300
    assert_operator stamp + seen["puma.request_body_wait"] + (seen["pando.queue_time"] * 1000), :<=, seen["now"] + 1
  end

  def test_without_a_body
    seen = JSON.parse(@server.get("/").body)

    refute_includes seen, "puma.request_body_wait"
    assert_operator seen["now"] - seen["HTTP_X_REQUEST_START"].to_i, :<, 5000
  end
end
