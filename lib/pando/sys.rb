# frozen_string_literal: true

require "pando/native"
require "pando/sys/pidfd"
require "pando/sys/sample"

module Pando
  # Thin Linux calls without policy, written in C. Each failure is the Errno of its call.
  module Sys
    # @return [Float] CLOCK_MONOTONIC in seconds: the only clock that deadlines know
    def self.now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
  end
end
