# frozen_string_literal: true

require "support/fair_clock"

module Chaos
  # How long the server's processes were ready to run and waited for a CPU. The machine causes that delay, so it is
  # added to their time for recovery. It comes from the scheduler (run_delay in /proc/PID/schedstat), plus the time that
  # the host stole from the machine.
  class Stall
    # @return [Float] seconds so far, of all sampled processes
    attr_reader :seconds

    def initialize
      @seconds = 0.0
      @stolen = Support::FairClock.stolen
      @delays = {}
      @lock = Mutex.new
    end

    # @param pids [Array<Integer>] processes whose waits delay the recovery, so not the serving workers
    def look(pids)
      delays = pids.to_h { |pid| [pid, delay_of(pid)] }.compact
      @lock.synchronize do
        @seconds += delays.sum { |pid, delay| [delay - @delays.fetch(pid, 0), 0].max } if @delays.any?
        @delays = delays
        @seconds += stolen
      end
    end

    private

    # @return [Float] seconds since the last sample
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
