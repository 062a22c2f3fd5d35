# frozen_string_literal: true

require "test_helper"
require "securerandom"
require "support/server_process"
require_relative "../../bench/support/bundle"

# Promise: a worker that leaves tells the clients of the WebSockets that an app serves by websocket-driver why it closes
# them: 1012 if it is replaced, 1001 if the server stops. By then the app's last hook has used them.
class WebSocketsTest < Minitest::Test
  LIBRARIES = %w[websocket-driver].freeze
  APP = <<~'RUBY'
    require "websocket/driver"

    class Echo
      ALL = []
      attr_reader :env, :driver

      def initialize(env)
        @env = env
        @url = "ws://#{env["HTTP_HOST"]}#{env["PATH_INFO"]}"
        @io = env["rack.hijack"].call
        @driver = WebSocket::Driver.rack(self)
        @driver.on(:message) { |message| @driver.text("#{Process.pid} #{message.data}") }
        @driver.on(:close) { @io.close }
        ALL << self
        @driver.start
        Thread.new { listen }
      end

      attr_reader :url

      def write(bytes) = @io.write(bytes)

      def listen
        loop { @driver.parse(@io.readpartial(4096)) }
      rescue IOError, SystemCallError
        @io.close
      end
    end

    run lambda { |env|
      next [200, {}, ->(stream) { stream.write("x") and sleep }] if env["PATH_INFO"] == "/silent"
      next [200, {}, [Process.pid.to_s]] unless WebSocket::Driver.websocket?(env)

      Echo.new(env)
      [200, {}, []]
    }
  RUBY
  CONFIG = <<~RUBY
    workers 1
    fork_safety threads: :allow
    before_worker_exit { Echo::ALL.each { |one| one.driver.text("last words") } }
  RUBY
  GEMFILE = File.expand_path("../fixtures/apps/cable/Gemfile", __dir__)

  # A WebSocket that reads what the server sends: frames that are neither masked nor split.
  class Client
    def initialize(socket)
      @socket = socket
      @socket.write("GET /ws HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" \
                    "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: cGFuZG9wYW5kb3BhbmRvIQ==\r\n\r\n")
      raise "no upgrade" unless @socket.gets.include?(" 101 ")

      nil until @socket.gets("\r\n").strip.empty?
    end

    # @return [String] the answer
    def say(text)
      mask = SecureRandom.bytes(4)
      masked = text.bytes.zip(mask.bytes.cycle).map { |byte, bits| byte ^ bits }
      @socket.write([0x81, 0x80 | text.bytesize].pack("CC") + mask + masked.pack("C*"))
      frame.last
    end

    # @return [Array(Integer, String)] opcode and payload
    def frame
      @socket.wait_readable(90) || raise("nothing comes")
      first, second = @socket.read(2).bytes
      [first & 0x0f, @socket.read(second & 0x7f)]
    end

    # @return [Array(Integer, String)] code and reason
    def close_frame
      opcode, payload = frame
      raise "opcode #{opcode}: #{payload}" unless opcode == 8

      @socket.close
      payload.unpack("na*")
    end
  end

  def teardown = @server&.kill

  def test_the_server_stops
    start
    client.say("hello")
    @server.signal("TERM")

    assert_equal([1, "last words"], client.frame)
    assert_equal([1001, "the server stops"], client.close_frame)
    assert_predicate(@server.wait_for_exit, :success?)
  end

  def test_its_worker_is_replaced
    start
    pid = client.say("hello")[/\d+/]
    assert_told_of_its_replacement(pid)
  end

  # The worker waits for it, and keeps some of its time for the WebSockets.
  def test_beside_a_stream_that_writes_nothing
    start("threads 2\nstop_timeout 4")
    pid = client.say("hello")[/\d+/]
    stream = @server.connect
    stream.write("GET /silent HTTP/1.1\r\nHost: a\r\n\r\n")
    stream.readpartial(1000)
    assert_told_of_its_replacement(pid)
  end

  private

  # @param pid [String] of the client's worker
  def assert_told_of_its_replacement(pid)
    @server.wait_for("worker.exited", pid: Integer(pid)) do
      @server.signal("HUP")
      assert_equal([1, "last words"], client.frame)
      assert_equal([1012, "the server restarts: connect again"], client.close_frame)
    end
  end

  def client = @client ||= Client.new(@server.connect)

  def start(config = "")
    bundle = Bench::Bundle.new("cable", GEMFILE).prepare
    @server = Support::ServerProcess.start(app: APP, config: CONFIG + config, env: bundle.environment)
  end
end
