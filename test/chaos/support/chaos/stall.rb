# frozen_string_literal: true

require "support/fair_clock"

module Chaos
  # For how long the server's processes wanted a CPU and had none: that time is the machine's, and is added to what
  # they are given to get whole. From the scheduler's own account (run_delay of /proc/PID/schedstat), and what the
  # machine itself was not given by its host.
  class Stall
    # @return [Float] seconds so far, of all processes that were looked at
    attr_reader :seconds

    def initialize
      @seconds = 0.0
      @stolen = Support::FairClock.stolen
      @delays = {}
      @lock = Mutex.new
    end

    # @param pids [Array<Integer>] whose wait delays the way back: not the workers that serve
    def look(pids)
      delays = pids.to_h { |pid| [pid, delay_of(pid)] }.compact
      @lock.synchronize do
        @seconds += delays.sum { |pid, delay| [delay - @delays.fetch(pid, 0), 0].max } if @delays.any?
        @delays = delays
        @seconds += stolen
      end
    end

    private

    # @return [Float] seconds since the last look
    def stolen
      before = @stolen
      (@stolen = Support::FairClock.stolen) - before
    end

    def delay_of(pid)
      File.read("/proc/#{pid}/schedstat").split[1].to_i / 1e9
    rescue SystemCallError
      nil
    end
  end
end
