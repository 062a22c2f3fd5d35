# frozen_string_literal: true

require "socket"

module Bench
  module Lab
    # A closed loop of several clients in one thread. Each request has a new connection, because not every server keeps
    # connections alive.
    class Client
      # The outcome of the n-th request, in order.
      #
      # @!attribute target [Integer] index in the traffic's targets
      # @!attribute began_at [Float] seconds of the monotonic clock
      # @!attribute seconds [Float] until the last byte of the response
      Sent = Struct.new(:target, :began_at, :seconds)

      REPLY_WITHIN = 60 # seconds
      BODY = "position=7" # for other verbs than GET, unless the app has another one
      FORM = "application/x-www-form-urlencoded"
      CHUNK = 65_536

      # @return [Array<Sent>]
      attr_reader :sent

      # @return [Array<String>] what went wrong
      attr_reader :failures

      # @param traffic [Traffic]
      # @param clients [Integer]
      def initialize(port, traffic, clients:)
        @address = Socket.sockaddr_in(port, "127.0.0.1")
        @traffic = traffic
        @clients = clients
        @sent = []
        @failures = []
        @open = {}
      end

      # Sends that many requests, and returns when all are answered.
      def run(count)
        @left = count
        [@clients, count].min.times { ask }
        answer until @open.empty?
      end

      private

      def ask
        @left -= 1
        index, path = @traffic.next
        @sent << Sent.new(index, now, nil)
        socket = Socket.new(:INET, :STREAM)
        socket.connect(@address)
        socket.write(request(@traffic.targets[index], path, @sent.size))
        @open[socket] = [@sent.last, +""]
      rescue SystemCallError => e
        fail_with("#{path}: #{e.class}", socket)
      end

      def request(target, path, sequence)
        body = target.verb == "GET" ? "" : target.body || BODY
        headers = { "Host" => "127.0.0.1", "X-Lab" => sequence, "Connection" => "close", **form(body),
                    **target.headers }
        "#{target.verb} #{path} HTTP/1.1\r\n#{headers.map { |name, value| "#{name}: #{value}\r\n" }.join}\r\n#{body}"
      end

      def form(body) = body.empty? ? {} : { "Content-Type" => FORM, "Content-Length" => body.bytesize }

      def answer
        ready, = IO.select(@open.keys, nil, nil, REPLY_WITHIN)
        return ready.each { |socket| read(socket) } if ready

        stuck = @open.keys
        stuck.each { |socket| fail_with("no answer within #{REPLY_WITHIN} s", socket) }
      end

      def read(socket)
        sent, reply = @open.fetch(socket)
        loop do
          piece = socket.read_nonblock(CHUNK, exception: false)
          return if piece == :wait_readable
          break if piece.nil?

          reply << piece
        end
        sent.seconds = now - sent.began_at
        @failures << "#{@traffic.targets[sent.target].path}: #{reply.lines.first&.chomp}" unless right?(reply)
        finished(socket)
      rescue SystemCallError => e
        fail_with("#{@traffic.targets[sent.target].path}: #{e.class}", socket)
      end

      def right?(reply) = reply.match?(%r{\AHTTP/1.1 2\d\d }) && reply.include?("\r\n\r\n")

      def fail_with(words, socket)
        @failures << words
        finished(socket)
      end

      def finished(socket)
        @open.delete(socket)
        socket&.close
        ask if @left.positive?
      end

      def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    end
  end
end
