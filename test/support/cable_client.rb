# frozen_string_literal: true

require "json"
require "securerandom"
require "socket"

module Support
  # An Action Cable client: a WebSocket (RFC 6455) that subscribes to one channel, and reconnects when the server says
  # so, or when the connection ends. A thread of the test reads from it.
  #
  # Messages belong to the session (connection) in which they arrived.
  class CableClient
    # @!attribute texts [Array<String>] of the broadcasts, in order
    # @!attribute farewell [Hash, nil] the server's `disconnect`
    Session = Struct.new(:worker, :confirmed_at, :texts, :farewell, :ended_at, keyword_init: true) do
      def subscribed? = !confirmed_at.nil? && !worker.nil? && farewell.nil? && ended_at.nil?
      # The connection ended without a `disconnect`.
      def cut_off? = !ended_at.nil? && farewell.nil?
    end

    CHANNEL = JSON.generate(channel: "NotesChannel")
    TEXT = 1
    CLOSE = 8
    PING = 9
    PONG = 10
    # Random seconds before it reconnects.
    BACKOFF = (0.0..0.2)

    # @param connect [#call] returns a socket to the server
    def initialize(connect)
      @connect = connect
      @sessions = []
      @lock = Mutex.new
      @thread = Thread.new { converse until @stopped }
    end

    # @return [Array<Session>]
    def sessions = @lock.synchronize { @sessions.map(&:dup) }
    # @return [Session, nil] the last one
    def session = @lock.synchronize { @sessions.last&.dup }
    def subscribed? = !!session&.subscribed?
    def worker = session&.worker
    def received?(text) = @lock.synchronize { @sessions.any? { |one| one.texts.include?(text) } }

    def close
      @stopped = true
      @socket&.close
      @thread.join(2) || @thread.kill
    end

    private

    def converse
      @socket = @connect.call
      session = Session.new(texts: [])
      @lock.synchronize { @sessions << session }
      shake_hands
      listen(session)
    rescue SystemCallError, IOError
      nil # the server is gone
    ensure
      @lock.synchronize { session.ended_at = now } if session
      @socket&.close
      sleep(rand(BACKOFF)) unless @stopped
    end

    def shake_hands
      key = SecureRandom.base64(16)
      @socket.write("GET /cable HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" \
                    "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: #{key}\r\n" \
                    "Sec-WebSocket-Protocol: actioncable-v1-json\r\nOrigin: http://localhost\r\n\r\n")
      status = @socket.gets.to_s
      raise IOError, "no upgrade: #{status}" unless status.include?(" 101 ")

      nil until @socket.gets("\r\n").to_s.strip.empty?
    end

    def listen(session)
      while (kind, payload = frame)
        case kind
        when TEXT then understand(session, JSON.parse(payload))
        when PING then transmit(PONG, payload)
        when CLOSE then return transmit(CLOSE, payload)
        end
      end
    end

    # Like Rails' own client, it closes the connection on a `disconnect`.
    def understand(session, message)
      case message["type"]
      when "welcome" then transmit(TEXT, JSON.generate(command: "subscribe", identifier: CHANNEL))
      when "confirm_subscription" then @lock.synchronize { session.confirmed_at = now }
      when "disconnect"
        @lock.synchronize { session.farewell = message }
        transmit(CLOSE, [1000].pack("n"))
      when nil then note(session, message["message"])
      end
    end

    def note(session, message)
      @lock.synchronize do
        session.worker = message["worker"] if message["worker"]
        session.texts << message["text"] if message["text"]
      end
    end

    # @return [Array(Integer, String), nil] nil at the end; the server's frames are neither masked nor split
    def frame
      first, second = @socket.read(2)&.bytes
      return unless second

      size = second & 0x7f
      size = @socket.read(2).unpack1("n") if size == 126
      size = @socket.read(8).unpack1("Q>") if size == 127
      [first & 0x0f, @socket.read(size)]
    end

    def transmit(kind, payload)
      mask = SecureRandom.bytes(4).bytes
      masked = payload.bytes.each_with_index.map { |byte, index| byte ^ mask[index % 4] }
      @socket.write([0x80 | kind, 0x80 | payload.bytesize, *mask, *masked].pack("C*")) # our payloads are always short
    end

    def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
  end
end
