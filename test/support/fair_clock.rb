# frozen_string_literal: true

require "etc"

module Support
  # Seconds that pass for this machine: what its host gave to others while it wanted to go on does not count. For limits
  # that a test has to keep; a shared machine may lack most of its processors for minutes.
  module FairClock
    TICKS = Etc.sysconf(Etc::SC_CLK_TCK).to_f
    PROCESSORS = Etc.nprocessors
    STEAL = 8 # which number of the first line (proc_stat(5))

    # @return [Float] seconds
    def self.now = Process.clock_gettime(Process::CLOCK_MONOTONIC) - stolen

    # @return [Float] seconds so far, of each processor on an average: who waits for all of them still comes to an end
    def self.stolen = File.read("/proc/stat").lines.first.split[STEAL].to_i / TICKS / PROCESSORS
  end
end
