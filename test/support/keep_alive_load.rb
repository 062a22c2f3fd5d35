# frozen_string_literal: true

require "socket"

module Support
  # Clients that send requests all the time, each on a thread with one connection that it keeps as long as the server
  # does. Every request has a unique number at the end of its path.
  #
  #     load = KeepAliveLoad.start(server.method(:connect), clients: 4, method: "POST")
  #     load.wait_for_more(1000)
  #     load.stop
  #     load.outcomes.map(&:status).tally # => {200=>1000, 502=>3}
  class KeepAliveLoad
    # A request: its number, and its status or error.
    Outcome = Struct.new(:number, :status, :error)
    PATIENCE = 60

    def self.start(connect, **options) = new(connect, **options)

    # @param connect [#call] returns a new socket
    # @param path [String] the number is appended to it
    def initialize(connect, clients: 4, method: "GET", path: "/")
      @answered = Array.new(clients, 0)
      @connect = connect
      @method = method
      @path = path
      @lock = Mutex.new
      @news = ConditionVariable.new
      @outcomes = []
      @number = 0
      @stopping = false
      @threads = Array.new(clients) { |client| Thread.new { ask_on(client) } }
    end

    # Waits until that many further requests have an outcome.
    def wait_for_more(count)
      wanted = @lock.synchronize { @outcomes.size } + count
      wait(-> { "#{wanted} answers, #{@outcomes.size} came" }) { @outcomes.size >= wanted }
    end

    # Waits until all requests that are under way have an outcome.
    def wait_for_each_client
      before = @lock.synchronize { @answered.dup }
      wait(-> { "an answer for each client" }) { @answered.zip(before).all? { |now, then_| now > then_ } }
    end

    def stop
      @stopping = true
      @threads.each(&:join)
      self
    end

    def outcomes = @lock.synchronize { @outcomes.dup }
    def failures = outcomes.reject { |outcome| outcome.status == 200 }

    private

    def wait(what)
      deadline = now + PATIENCE
      @lock.synchronize do
        until yield
          raise "no #{what.call} within #{PATIENCE} s" if now > deadline

          @news.wait(@lock, deadline - now)
        end
      end
    end

    def ask_on(client)
      socket = nil
      until @stopping
        socket = ask(socket)
        @lock.synchronize { @answered[client] += 1 }
      end
    ensure
      socket&.close
    end

    # @return [Socket, nil] for the next request
    def ask(socket)
      number = @lock.synchronize { @number += 1 }
      socket ||= @connect.call
      length = "Content-Length: 0\r\n" if @method == "POST"
      socket.write("#{@method} #{@path}#{number} HTTP/1.1\r\nHost: localhost\r\n#{length}\r\n")
      status, kept = read_answer(socket)
      note(Outcome.new(number, status))
      return socket if kept

      socket.close
    rescue SystemCallError, IOError => e
      socket&.close
      note(Outcome.new(number, nil, e))
    end

    # @return [Array(Integer, Boolean)] status, and whether the connection can be reused
    def read_answer(socket)
      head = socket.gets("\r\n\r\n") or raise EOFError, "the connection was closed without an answer"
      length = head[/^content-length: (\d+)/i, 1]
      raise EOFError, "half an answer: #{head.inspect}" unless head.end_with?("\r\n\r\n") && length

      body = socket.read(length.to_i)
      raise EOFError, "half a body: #{head.inspect}" unless body.bytesize == length.to_i

      [head[%r{\AHTTP/1\.1 (\d{3}) }, 1].to_i, !head.match?(/^connection: close/i)]
    end

    def note(outcome)
      @lock.synchronize do
        @outcomes << outcome
        @news.broadcast
      end
      nil
    end

    def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
  end
end
