# frozen_string_literal: true

module Chaos
  # For how long the server's processes wanted a CPU and had none: that time is the machine's, and is added to what
  # they are given to get whole. From the scheduler's own account (run_delay of /proc/PID/schedstat).
  class Stall
    # @return [Float] seconds so far, of all processes that were looked at
    attr_reader :seconds

    def initialize
      @seconds = 0.0
      @delays = {}
      @lock = Mutex.new
    end

    # @param pids [Array<Integer>] whose wait delays the way back: not the workers that serve
    def look(pids)
      delays = pids.to_h { |pid| [pid, delay_of(pid)] }.compact
      @lock.synchronize do
        @seconds += delays.sum { |pid, delay| [delay - @delays.fetch(pid, 0), 0].max } if @delays.any?
        @delays = delays
      end
    end

    private

    def delay_of(pid)
      File.read("/proc/#{pid}/schedstat").split[1].to_i / 1e9
    rescue SystemCallError
      nil
    end
  end
end
