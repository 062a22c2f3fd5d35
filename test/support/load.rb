# frozen_string_literal: true

require "socket"
require "support/fair_clock"

module Support
  # Clients that send requests all the time, each on a thread with one connection per request. Every request has a
  # unique number in its path, and the response must be the pid of the worker (see APP).
  #
  #     load = Load.start(server.method(:connect), clients: 4)
  #     load.wait_for_answers(1000)
  #     load.stop
  #     load.failures # => []
  class Load
    # One request and its outcome.
    Outcome = Struct.new(:number, :pid, :error, :seconds)
    PATIENCE = 60 # seconds for a number of responses, and for one response

    # Responds with the pid after SECONDS. First it records in the file "begun" which process serves which request.
    APP = <<~'RUBY'
      run lambda { |env|
        File.write("begun", "#{env["PATH_INFO"][1..]} #{Process.pid}\n", mode: "a")
        seconds = env["QUERY_STRING"].to_f
        sleep seconds if seconds.positive?
        [200, {}, ["pid #{Process.pid}"]]
      }
    RUBY

    # @param connect [#call] returns a new socket
    # @param seconds [Float] duration of each request in the worker
    def self.start(connect, clients: 4, seconds: 0) = new(connect, clients, seconds)

    def initialize(connect, clients, seconds)
      @connect = connect
      @seconds = seconds
      @lock = Mutex.new
      @news = ConditionVariable.new
      @outcomes = []
      @number = 0
      @stopping = false
      @threads = Array.new(clients) { Thread.new { ask until @stopping } }
    end

    # Waits until that many requests have been answered since the start.
    def wait_for_answers(count, patience: PATIENCE)
      deadline = now + patience
      @lock.synchronize do
        until @outcomes.size >= count
          left = deadline - now
          raise "only #{@outcomes.size} of #{count} requests were answered within #{patience} s" if left <= 0

          @news.wait(@lock, left)
        end
      end
    end

    # Waits until that many further requests have been answered.
    def wait_for_more(count) = wait_for_answers(@lock.synchronize { @outcomes.size } + count)

    # @return [Load] once every request that was started has an outcome
    def stop
      @stopping = true
      @threads.each(&:join)
      self
    end

    def outcomes = @lock.synchronize { @outcomes.dup }
    def failures = outcomes.select(&:error)
    def slowest = outcomes.map(&:seconds).max

    private

    def ask
      number = @lock.synchronize { @number += 1 }
      began = now
      outcome = Outcome.new(number, *answer(number))
      outcome.seconds = now - began
      @lock.synchronize do
        @outcomes << outcome
        @news.broadcast
      end
    end

    # @return [Array(Integer, nil), Array(nil, Exception)] the pid, or the error
    def answer(number)
      socket = @connect.call
      socket.timeout = PATIENCE if socket.respond_to?(:timeout=)
      socket.write("GET /#{number}?#{@seconds} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
      [whole(socket.read)]
    rescue SystemCallError, IOError => e
      [nil, e]
    ensure
      socket&.close
    end

    def whole(text)
      text[%r{\AHTTP/1\.1 200 .*^content-length: (\d+)\r\n.*\r\n\r\npid (\d+)\z}mi, 2]&.to_i ||
        raise(EOFError, "not a whole answer: #{text.inspect}")
    end

    def now = FairClock.now
  end
end
