# frozen_string_literal: true

module Bench
  # A Rack middleware that reports what requests cost the process that serves them: CPU time, page faults and garbage
  # collections, from the beginning of one request to the beginning of the next, so that the time between them counts
  # too. The header X-Cost of a response tells the cost of the previous request: pid, its number in this process,
  # nanoseconds, faults, collections.
  class Gauge
    FIELDS = %i[pid number nanoseconds faults collections].freeze
    Cost = Struct.new(*FIELDS)
    STAT_MINOR_FAULTS = 7 # index in /proc/PID/stat, after the name

    # @param text [String, nil] the header
    # @return [Cost, nil]
    def self.read(text)
      fields = text.to_s.split(",").map(&:to_i)
      Cost.new(*fields) if fields.size == FIELDS.size
    end

    def initialize(app)
      @app = app
    end

    def call(env)
      cost = measure
      status, headers, body = @app.call(env)
      headers["x-cost"] = cost.join(",")
      [status, headers, body]
    end

    private

    def measure
      now = reading
      begin_anew unless @pid == Process.pid
      cost = @last ? [@pid, @number, *now.zip(@last).map { |new, old| new - old }] : [@pid]
      @number += 1
      @last = now
      cost
    end

    def begin_anew
      @pid = Process.pid
      @number = 0
      @last = nil
    end

    def reading
      faults = File.read("/proc/self/stat").rpartition(")").last.split[STAT_MINOR_FAULTS].to_i
      [Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID, :nanosecond), faults, GC.count]
    end
  end
end
