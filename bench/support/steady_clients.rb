# frozen_string_literal: true

require "net/http"

module Bench
  # Clients that send the next request as soon as they have a response, each on its own connection. Optionally, another
  # client sends requests that kill workers.
  class SteadyClients
    Result = Struct.new(:answered, :failed, :deaths, :slowest)

    def initialize(port, count)
      @port = port
      @count = count
    end

    # @param seconds [Integer] @param deadly [String, nil] a path @param every [Float] seconds
    # @return [Result]
    def run(seconds, deadly: nil, every: nil)
      ends_at = now + seconds
      poison = Thread.new { kill(deadly, every, ends_at) } if deadly
      clients = Array.new(@count) { Thread.new { ask(ends_at) } }
      times, failures = clients.map(&:value).transpose.map(&:flatten)
      Result.new(times.size, failures.size, poison&.value.to_i, times.max || 0)
    end

    private

    # @return [Array(Array<Float>, Array<String>)] seconds of each response, and errors
    def ask(ends_at)
      times = []
      failures = []
      connect do |http|
        until (began = now) >= ends_at
          status = http.get("/").code
          status == "200" ? times << (now - began) : failures << status
        end
      end
      [times, failures]
    rescue SystemCallError, IOError, Timeout::Error => e
      [times, failures << e.message]
    end

    # @return [Integer] number of deadly requests
    def kill(path, every, ends_at)
      requests = []
      due = now
      while due < ends_at
        sleep([due - now, 0].max)
        requests << Thread.new { connect { |http| http.get(path) } }
        due += every
      end
      requests.each(&:join).size
    end

    def connect(&block) = Net::HTTP.start("127.0.0.1", @port, read_timeout: 30, max_retries: 0, &block)
    def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
  end
end
