# frozen_string_literal: true

require "digest"
require "json"
require "securerandom"
require "socket"

module Support
  # An Action Cable client: a WebSocket (RFC 6455) that subscribes to one channel, and reconnects when the server says
  # so, or when the connection ends. A thread of the test reads from it, and checks the handshake and each frame.
  #
  # Messages belong to the session (connection) in which they arrived.
  class CableClient
    # The server does not keep to the protocol.
    class Fault < StandardError; end

    # @!attribute worker [Integer, nil] its pid, if the channel says so
    # @!attribute texts [Array<String>] of the broadcasts, in order
    # @!attribute farewell [Hash, nil] the server's `disconnect`
    # @!attribute told_at [Float, nil] when that came
    Session = Struct.new(:worker, :confirmed_at, :texts, :farewell, :told_at, :ended_at, keyword_init: true) do
      def subscribed? = !confirmed_at.nil? && !worker.nil? && farewell.nil? && ended_at.nil?
      # The connection ended without a `disconnect`.
      def cut_off? = !ended_at.nil? && farewell.nil?
    end

    CHANNEL = JSON.generate(channel: "NotesChannel")
    PROTOCOL = "actioncable-v1-json"
    GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
    TEXT = 1
    CLOSE = 8
    PING = 9
    PONG = 10
    # Random seconds before it reconnects.
    BACKOFF = (0.0..0.2)

    # @return [Array<String>] what the server did against the protocol
    attr_reader :faults

    # @param connect [#call] returns a socket to the server
    # @param channel [String] the identifier of the subscription
    # @param worker [Object] what stands for the worker if the channel does not name it
    # @param headers [Hash{String => String}] further fields of the handshake
    def initialize(connect, channel: CHANNEL, worker: nil, headers: {})
      @connect = connect
      @channel = channel
      @anonymous = worker
      @headers = { "Host" => "localhost", "Origin" => "http://localhost", **headers }
      @sessions = []
      @faults = []
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
      session = Session.new(texts: [], worker: @anonymous)
      @lock.synchronize { @sessions << session }
      shake_hands
      listen(session)
    rescue SystemCallError, IOError
      nil # the server is gone
    rescue Fault, JSON::ParserError => e
      @faults << e.message
    ensure
      @lock.synchronize { session.ended_at = now } if session
      @socket&.close
      sleep(rand(BACKOFF)) unless @stopped
    end

    def shake_hands
      key = SecureRandom.base64(16)
      fields = @headers.merge("Connection" => "Upgrade", "Upgrade" => "websocket", "Sec-WebSocket-Version" => "13",
                              "Sec-WebSocket-Key" => key, "Sec-WebSocket-Protocol" => PROTOCOL)
      @socket.write("GET /cable HTTP/1.1\r\n#{fields.map { |name, value| "#{name}: #{value}\r\n" }.join}\r\n")
      status = @socket.gets.to_s
      raise IOError, "no upgrade: #{status}" unless status.include?(" 101 ")

      check_handshake(key, fields_of_response)
    end

    def fields_of_response
      lines = []
      until (line = @socket.gets("\r\n").to_s.strip).empty?
        lines << line
      end
      lines.to_h { |one| one.split(/:\s*/, 2).then { |name, value| [name.downcase, value] } }
    end

    def check_handshake(key, fields)
      proof = Digest::SHA1.base64digest(key + GUID)
      check(fields["sec-websocket-accept"] == proof, "a handshake with another proof: #{fields}")
      check(fields["sec-websocket-protocol"] == PROTOCOL, "a handshake with another protocol: #{fields}")
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
      when "welcome" then transmit(TEXT, JSON.generate(command: "subscribe", identifier: @channel))
      when "confirm_subscription" then @lock.synchronize { session.confirmed_at = now }
      when "disconnect"
        @lock.synchronize { session.farewell, session.told_at = message, now } # rubocop:disable Style/ParallelAssignment
        transmit(CLOSE, [1000].pack("n"))
      when nil then note(session, message["message"])
      else check(message["type"] == "ping", "a message of an unknown type: #{message}")
      end
    end

    # Each broadcast of a test is different, so none comes twice.
    def note(session, message)
      message = { "text" => message } if message.is_a?(String) # Turbo Streams
      text = message["text"]
      @lock.synchronize do
        session.worker = message["worker"] if message["worker"]
        check(!session.texts.include?(text), "#{text.inspect} came twice")
        session.texts << text if text
      end
    end

    # @return [Array(Integer, String), nil] nil at the end; the server's frames are neither masked nor split
    def frame
      first, second = @socket.read(2)&.bytes
      return unless second

      kind = first & 0x0f
      check(first & 0xf0 == 0x80 && [TEXT, CLOSE, PING, PONG].include?(kind), "a frame that begins with #{first}")
      payload = @socket.read(size_of(second, kind))
      check(kind != TEXT || payload.force_encoding("UTF-8").valid_encoding?, "a text that is no UTF-8: #{payload}")
      [kind, payload]
    end

    # In as few bytes as possible, and without a mask; a control frame is short.
    def size_of(byte, kind)
      size = byte
      size = @socket.read(2).unpack1("n").tap { |long| check(long > 125, "a size in too many bytes") } if byte == 126
      size = @socket.read(8).unpack1("Q>").tap { |long| check(long > 65_535, "a size in 8 bytes") } if byte == 127
      check(byte < 128 && (kind == TEXT || size < 126), "a frame of kind #{kind} with the size #{byte}")
      size
    end

    def transmit(kind, payload)
      mask = SecureRandom.bytes(4).bytes
      masked = payload.bytes.each_with_index.map { |byte, index| byte ^ mask[index % 4] }
      @socket.write([0x80 | kind, *size_bytes(payload.bytesize), *mask, *masked].pack("C*"))
    end

    def size_bytes(size) = size < 126 ? [0x80 | size] : [0x80 | 126, *[size].pack("n").bytes]

    def check(fine, message) = fine || raise(Fault, message)
    def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
  end
end
