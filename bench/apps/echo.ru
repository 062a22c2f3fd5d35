# frozen_string_literal: true

require "nio"
require "websocket/driver"

# An application with WebSockets of its own, by websocket-driver: one thread watches all of them.
#
#   GET /ws      a WebSocket that repeats each text after the pid of its process
#   GET /        13 bytes, and the pid in X-Worker
module Echo
  # One client.
  class Conversation
    READ = 65_536

    attr_reader :env, :url

    # @param env [Hash] of the request, whose socket it takes over
    def initialize(env)
      @env = env
      @url = "ws://#{env["HTTP_HOST"]}#{env["PATH_INFO"]}"
      @socket = env["rack.hijack"].call
      @unsent = +"".b
    end

    # Answers the handshake, in the thread of the loop like everything that follows.
    def join(selector)
      @monitor = selector.register(@socket, :r)
      @monitor.value = self
      @driver = WebSocket::Driver.rack(self)
      @driver.on(:message) { |event| @driver.text("#{Process.pid} #{event.data}") }
      @driver.on(:close) { @closes = true }
      @driver.start
      leave if finished?
    end

    def ready
      flush if @monitor.writable?
      receive if @monitor.readable?
      leave if finished?
    rescue SystemCallError, IOError
      leave
    end

    # websocket-driver has bytes for the client.
    def write(bytes)
      @unsent << bytes
      flush
    end

    private

    def receive
      bytes = @socket.read_nonblock(READ, exception: false)
      @driver.parse(bytes) if bytes.is_a?(String)
      @ended = bytes.nil?
    end

    def flush
      sent = @unsent.empty? ? 0 : @socket.write_nonblock(@unsent, exception: false)
      @unsent = @unsent.byteslice(sent..) if sent.is_a?(Integer) && sent.positive?
      @monitor.interests = @unsent.empty? ? :r : :rw
    rescue SystemCallError, IOError
      @ended = true
    end

    def finished? = @ended || (@closes && @unsent.empty?)

    def leave
      @monitor.close
      @socket.close
    end
  end

  # Watches the sockets of this process. It starts with the first one, so no mold has it.
  class Watch
    def self.instance = @lock.synchronize { @instance ||= new }
    @lock = Mutex.new

    def initialize
      @selector = NIO::Selector.new
      @newcomers = Queue.new
      @thread = Thread.new { loop { turn } }
    end

    def add(conversation)
      @newcomers << conversation
      @selector.wakeup
    end

    private

    def turn
      @newcomers.pop.join(@selector) until @newcomers.empty?
      @selector.select { |monitor| monitor.value.ready }
    end
  end
end

HELLO = ["Hello, world!"].freeze

run(lambda do |env|
  if WebSocket::Driver.websocket?(env)
    Echo::Watch.instance.add(Echo::Conversation.new(env))
    [200, {}, []]
  else
    [200, { "content-type" => "text/plain", "content-length" => "13", "x-worker" => Process.pid.to_s }, HELLO]
  end
end)
