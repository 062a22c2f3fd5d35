# frozen_string_literal: true

require "socket"
require "pando/sys"
require "pando/measure/reply"

module Pando
  module Measure
    # Several clients in one thread. Each keeps a connection for some requests, and sends its next request as soon as it
    # has the answer. The order of the requests is fixed, so every server gets the same.
    #
    # @api private
    class Client
      # The outcome of a request.
      #
      # @!attribute seconds [Float, nil] until the last byte; nil: no complete answer came
      # @!attribute status [Integer, nil]
      # @!attribute trouble [String, nil] what was wrong
      Answer = Struct.new(:request, :seconds, :status, :location, :trouble, keyword_init: true) do
        def redirected? = (300..399).cover?(status)
        def server_error? = (500..599).cover?(status)
      end

      # A client that waits for an answer.
      Talk = Struct.new(:socket, :request, :began_at, :reply, :served)

      # Requests on one connection. With more, a server whose workers own connections could leave a worker without any.
      KEPT_FOR = 20
      REPLY_WITHIN = 60.0 # seconds
      CHUNK = 65_536
      AGENT = "pando measure"
      CLOSED = "the server closed the connection before the answer was complete"
      REFUSED = "the server refused the connection"
      private_constant :Talk, :KEPT_FOR, :CHUNK, :AGENT, :CLOSED, :REFUSED

      # @param port [Integer] @param headers [Hash{String => String}] of each request
      # @param clients [Integer]
      def initialize(port, headers:, clients:)
        @address = Socket.sockaddr_in(port, "127.0.0.1")
        @port = port
        @headers = headers
        @clients = clients
        @talks = {}
      end

      # Sends the requests, and returns when all are answered.
      #
      # @param requests [Array<Doctor::Request>]
      # @return [Array<Answer>] in the order in which they came
      def run(requests)
        @waiting = requests.dup
        @answers = []
        [@clients, requests.size].min.times { ask }
        listen until @talks.empty?
        @answers
      ensure
        @talks.each_key(&:close)
        @talks.clear
      end

      private

      # @param kept [Talk, nil] whose connection may be used again
      def ask(kept = nil)
        while (request = @waiting.shift)
          return if send_over(kept, request)

          kept = nil
        end
        kept&.socket&.close
      end

      # @return [Talk, nil] nil: it has failed, and the failure is noted
      def send_over(kept, request)
        began_at = Sys.now
        kept = nil if kept && ended?(kept.socket)
        socket = kept ? kept.socket : connect or return note(request, trouble: REFUSED) && nil
        write(Talk.new(socket, request, began_at, Reply.new(request.verb), kept ? kept.served + 1 : 1))
      end

      # A server may close a connection between two requests. Only then does the client open another one. It never sends
      # a request twice: that would hide requests that the server drops.
      def ended?(socket)
        return false if socket.read_nonblock(1, exception: false) == :wait_readable

        socket.close
        true
      rescue SystemCallError
        socket.close
        true
      end

      # @return [Socket, nil]
      def connect
        socket = Socket.new(:INET, :STREAM)
        socket.setsockopt(:TCP, :NODELAY, true)
        socket.connect(@address)
        socket
      rescue SystemCallError
        socket&.close
        nil
      end

      def write(talk)
        talk.socket.write(text(talk.request))
        @talks[talk.socket] = talk
      rescue SystemCallError
        talk.socket.close
        note(talk.request, trouble: CLOSED) && nil
      end

      def text(request)
        fields = { "Host" => "127.0.0.1:#{@port}", "User-Agent" => AGENT, "Accept" => "*/*" }
        fields = fields.merge(@headers, request.headers)
        fields["Content-Length"] = request.body.bytesize.to_s if request.body
        lines = fields.map { |name, value| "#{name}: #{value}\r\n" }
        "#{request.verb} #{request.target} HTTP/1.1\r\n#{lines.join}\r\n#{request.body}".b
      end

      def listen
        wait = @talks.each_value.map { |talk| talk.began_at + REPLY_WITHIN - Sys.now }.min
        ready, = IO.select(@talks.keys, nil, nil, [wait, 0].max)
        return ready.each { |socket| receive(@talks.fetch(socket)) } if ready

        late = @talks.values.select { |talk| Sys.now >= talk.began_at + REPLY_WITHIN }
        late.each { |talk| fail_with(talk, "no answer within #{REPLY_WITHIN.round} s") }
      end

      def receive(talk)
        until talk.reply.done?
          case piece = talk.socket.read_nonblock(CHUNK, exception: false)
          when :wait_readable then return
          when nil then return closed(talk)
          else talk.reply << piece
          end
        end
        finish(talk)
      rescue SystemCallError
        fail_with(talk, CLOSED)
      rescue Reply::Malformed => e
        fail_with(talk, "malformed answer: #{e.message}")
      end

      def closed(talk)
        talk.reply.close.done? ? finish(talk) : fail_with(talk, CLOSED)
      end

      def finish(talk)
        reply = talk.reply
        wrong = "status #{reply.status}" if reply.status >= 400
        note(talk.request, seconds: Sys.now - talk.began_at, status: reply.status, location: reply["location"],
                           trouble: wrong)
        @talks.delete(talk.socket)
        return ask(talk) if reply.keep? && talk.served < KEPT_FOR

        talk.socket.close
        ask
      end

      def fail_with(talk, words)
        @talks.delete(talk.socket)
        talk.socket.close
        note(talk.request, trouble: words)
        ask
      end

      def note(request, **facts) = @answers << Answer.new(request: request, **facts)
    end
  end
end
