# frozen_string_literal: true

require "etc"
require_relative "cpus"

module Support
  # A clock for the time that this machine really had: it leaves out the time that its host gave to others while it
  # wanted to run. For time limits in tests, because a shared machine may lack most of its CPUs for minutes.
  module FairClock
    TICKS = Etc.sysconf(Etc::SC_CLK_TCK).to_f
    ALLOWED = CPUs.allowed
    STEAL = 7 # index among a CPU's figures (man 5 proc_stat)

    # @return [Float] seconds
    def self.now = Process.clock_gettime(Process::CLOCK_MONOTONIC) - stolen

    # @return [Float] seconds so far, the average of our CPUs: work that uses all of them still makes progress
    def self.stolen = CPUs.times.values_at(*ALLOWED).compact.sum { |figures| figures[STEAL] } / TICKS / ALLOWED.size
  end
end
