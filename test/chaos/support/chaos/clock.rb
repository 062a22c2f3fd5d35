# frozen_string_literal: true

module Chaos
  # @return [Float] monotonic seconds, the same in all processes of the machine
  def self.now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
end
