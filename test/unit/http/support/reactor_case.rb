# frozen_string_literal: true

require "fcntl"
require "io/wait"
require "tempfile"
require "timeout"
require_relative "reactor_stage"

module HTTPSupport
  # The common part of the tests of the reactor: a listener, a {ReactorStage}, and clients.
  module ReactorCase
    GET = "GET / HTTP/1.1\r\nhost: a\r\n\r\n"
    CLOSE = "GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n"
    POST = "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 3\r\n\r\nabc"
    DIED = 0
    TIMED_OUT = 1
    SUSPECT = 2
    LEFT_LATE = 4

    # Each test has a reactor of its own, and waits for its clocks most of the time.
    def self.included(tests) = tests.parallelize_me!

    def setup
      @listener = TCPServer.new("127.0.0.1", 0)
      @listener.setsockopt(:TCP, :NODELAY, 1)
      @listener.listen(1024)
      @listener.fcntl(Fcntl::F_SETFL, @listener.fcntl(Fcntl::F_GETFL) | Fcntl::O_NONBLOCK)
      @clients = []
    end

    def teardown
      @clients.each(&:close)
      @stage&.quit
      @listener.close
    end

    private

    def stage(lanes: 2, **settings)
      @stage = HTTPSupport::ReactorStage.new(@listener, **settings)
      lanes.times { |lane| @stage.open(lane) }
    end

    def connect
      TCPSocket.new("127.0.0.1", @listener.addr[1]).tap { |client| @clients << client }
    end

    def request(text)
      connect.tap { |client| client.write(text) }
    end

    def reset(client)
      @clients.delete(client)
      client.setsockopt(Socket::Option.linger(true, 0))
      client.close
    end

    # A worker on this lane answers a new client. patience: for requests of clients that have left.
    def serves(lane, patience: false)
      client = request("GET /new HTTP/1.1\r\nhost: a\r\n\r\n")
      taken = @stage.take(lane)
      taken = @stage.take(lane) if patience && taken.path != "/new"
      @stage.answer(taken, "new")
      assert_equal "new", body_of(client)
    end

    def body_of(client)
      head = +""
      head << Timeout.timeout(20) { client.readline } until head.end_with?("\r\n\r\n")
      Timeout.timeout(20) { client.read(head[/content-length: (\d+)/, 1].to_i) }
    end

    def sized_post(body)
      "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: #{body.bytesize}\r\n\r\n".b + body
    end

    def chunked_post(body)
      head = "POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n".b
      body.scan(/.{1,7000}/mn).inject(head) do |text, chunk|
        text << "#{chunk.bytesize.to_s(16)}\r\n" << chunk << "\r\n"
      end
          .concat("0\r\n\r\n")
    end

    # @return [ReactorStage::Request] the oldest one, whichever of the first two lanes it is on
    def take_from_either = wait_until { @stage.take(0, patience: 0) || @stage.take(1, patience: 0) }

    # The figures are as of the reactor's last turn, so they may lag behind the response.
    def counts(expected)
      found = nil
      wait_until(message: -> { "#{expected}, not #{found}" }) do
        found = @stage.stats.slice(*expected.keys)
        found == expected
      end
      assert_equal expected, found
    end

    def count(name, number) = counts(name => number)
    def count_above(name, number) = wait_until { @stage.stats.fetch(name) > number }

    # Sends further blocks until the reactor accepts no more for this client.
    def fill_ring(taken, sent)
      while @stage.try(taken, block = format("%020000d", sent.size)) == "ok"
        sent << block
      end
    end

    # The number of the reactor's wake-ups.
    def switches
      File.read("/proc/#{@stage.tell("pid")}/status")[/^voluntary_ctxt_switches:\s+(\d+)/, 1].to_i
    end

    # Waits until the reactor responds.
    def trickle(client, byte)
      client.write(byte) until client.wait_readable(0.05)
      client.read
    rescue Errno::EPIPE
      client.read
    end
  end
end
