# frozen_string_literal: true

require "etc"

module Support
  # A clock for the time that this machine really had: it leaves out the time that its host gave to others while it
  # wanted to run. For time limits in tests, because a shared machine may lack most of its CPUs for minutes.
  module FairClock
    TICKS = Etc.sysconf(Etc::SC_CLK_TCK).to_f
    PROCESSORS = File.foreach("/proc/stat").grep(/\Acpu\d/).size # also those that this process may not run on
    STEAL = 8 # index in the first line (proc_stat(5))

    # @return [Float] seconds
    def self.now = Process.clock_gettime(Process::CLOCK_MONOTONIC) - stolen

    # @return [Float] seconds so far, the average of the processors: work that uses all of them still makes progress
    def self.stolen = File.read("/proc/stat").lines.first.split[STEAL].to_i / TICKS / PROCESSORS
  end
end
