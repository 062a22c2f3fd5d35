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
      # @!attribute seconds [Float, nil] until the last byte of the response, and not more than the client waits; nil:
      #   there was no connection, or it was lost
      Sent = Struct.new(:target, :began_at, :seconds)

      # For so long as the client waits for two responses, no request has succeeded.
      class Stuck < StandardError; end

      REPLY_WITHIN = 60.0 # seconds
      BODY = "position=7" # for other verbs than GET, unless the app has another one
      FORM = "application/x-www-form-urlencoded"
      CHUNK = 65_536

      # @return [Array<Sent>]
      attr_reader :sent

      # @return [Array<String>] what went wrong
      attr_reader :failures

      # @param traffic [Traffic]
      # @param clients [Integer]
      # @param reply_within [Float] seconds
      def initialize(port, traffic, clients:, reply_within: REPLY_WITHIN)
        @address = Socket.sockaddr_in(port, "127.0.0.1")
        @traffic = traffic
        @clients = clients
        @reply_within = reply_within
        @sent = []
        @failures = []
        @open = {}
      end

      # Sends that many requests, and returns when all are answered or have failed.
      #
      # @raise [Stuck]
      def run(count)
        @left = count
        @succeeded_at = now
        until @left.zero? && @open.empty?
          ask while @left.positive? && @open.size < @clients
          answer
        end
      ensure
        @open.each_key(&:close).clear
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
        return if @open.empty?

        ready, = IO.select(@open.keys, nil, nil, [first_deadline - now, 0].max)
        ready&.each { |socket| read(socket) }
        expire
      end

      def first_deadline = @open.values.map { |sent, _reply| sent.began_at }.min + @reply_within

      def expire
        overdue = @open.select { |_socket, (sent, _reply)| now - sent.began_at >= @reply_within }
        overdue.each do |socket, (sent, _reply)|
          sent.seconds = @reply_within
          fail_with("#{path_of(sent)}: no answer within #{@reply_within.round} s", socket)
        end
        return if overdue.empty? || now - @succeeded_at < 2 * @reply_within

        raise Stuck, "no request has succeeded for #{(2 * @reply_within).round} s"
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
        return fail_with("#{path_of(sent)}: #{reply.lines.first&.chomp}", socket) unless right?(reply)

        @succeeded_at = now
        finished(socket)
      rescue SystemCallError => e
        fail_with("#{path_of(sent)}: #{e.class}", socket)
      end

      def right?(reply) = reply.match?(%r{\AHTTP/1.1 2\d\d }) && reply.include?("\r\n\r\n")

      def fail_with(words, socket)
        @failures << words
        finished(socket)
      end

      def finished(socket)
        @open.delete(socket)
        socket&.close
      end

      def path_of(sent) = @traffic.targets[sent.target].path

      def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    end
  end
end
