# frozen_string_literal: true

require "io/wait"
require "socket"

module Bench
  # Requests from several clients at once to a server on the loopback interface, one connection each. The load ends when
  # the caller says so, at a number of requests, or after a time.
  class Load
    # @!attribute workers [Hash{Integer => Integer}] pid => requests it answered
    # @!attribute failures [Array<String>] errors of the other requests
    # @!attribute complete [Boolean] false if the number or the time ended it
    Result = Struct.new(:workers, :failures, :complete, keyword_init: true) do
      def requests = workers.values.sum
    end

    REPLY_WITHIN = 30 # seconds

    def initialize(port, clients:)
      @port = port
      @clients = clients
    end

    # @param at_most [Integer] requests
    # @param seconds [Numeric]
    # @yieldparam workers [Hash{Integer => Integer}] pid => requests answered so far
    # @yieldreturn [Boolean] whether to end the load
    # @return [Result]
    def run(at_most:, seconds:, &enough)
      @result = Result.new(workers: Hash.new(0), failures: [], complete: false)
      @left = at_most
      @deadline = now + seconds
      @lock = Mutex.new
      Array.new(@clients) { Thread.new { request while another?(&enough) } }.each(&:join)
      @result
    end

    # Sends one request, outside of a run.
    #
    # @return [Integer] pid of the process that answered
    # @raise [SystemCallError, IOError] no process did
    def get(path)
      socket = Socket.tcp("127.0.0.1", @port, connect_timeout: 5)
      socket.write("GET #{path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
      reply = read_all(socket)
      raise IOError, "answer: #{reply.lines.first.inspect}" unless reply.start_with?("HTTP/1.1 200")

      Integer(reply[/^x-worker: (\d+)\r$/i, 1] || raise(IOError, "an answer without X-Worker"))
    ensure
      socket&.close
    end

    private

    def another?
      @lock.synchronize do
        @result.complete ||= yield(@result.workers)
        return false if @result.complete || @left.zero? || now > @deadline

        @left -= 1
        true
      end
    end

    def request
      pid = get("/")
      @lock.synchronize { @result.workers[pid] += 1 }
    rescue SystemCallError, IOError => e
      @lock.synchronize { @result.failures << "#{e.class}: #{e.message}" }
    end

    def read_all(socket)
      reply = +""
      until (read = socket.read_nonblock(16_384, exception: false)).nil?
        next reply << read unless read == :wait_readable

        raise IOError, "no answer within #{REPLY_WITHIN} s" unless socket.wait_readable(REPLY_WITHIN)
      end
      reply
    end

    def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
  end
end
