# frozen_string_literal: true

module Bench
  # A Rack middleware that tells what requests have cost the process that served them: CPU time, page faults and garbage
  # collections, from one request's begin to the next one's, so that nothing between them is left out. A response says
  # what the request before has cost, in X-Cost: pid, its number in this process, nanoseconds, faults, collections.
  class Gauge
    FIELDS = %i[pid number nanoseconds faults collections].freeze
    Cost = Struct.new(*FIELDS)
    STAT_MINOR_FAULTS = 7 # of /proc/PID/stat, behind the name

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
