# frozen_string_literal: true

require "etc"

module Pando
  class Config
    # How many CPUs the server may use: those it may be scheduled on
    # (sched_getaffinity(2)), or fewer where the control group has a quota, as
    # in most containers.
    #
    # @api private
    module CPUs
      # "MAX PERIOD" in microseconds, or "max PERIOD"; see cgroup-v2.rst of Linux.
      QUOTA_FILE = "/sys/fs/cgroup/cpu.max"

      module_function

      # @return [Integer] 1 or more
      def count(quota_file: QUOTA_FILE)
        [Etc.nprocessors, quota(quota_file)].compact.min.clamp(1, nil)
      end

      # @return [Integer, nil] whole CPUs, rounded up; nil without a quota
      def quota(file)
        time, period = File.read(file).split.map { |number| Integer(number, exception: false) }
        (time.to_r / period).ceil if time && period&.positive?
      rescue SystemCallError
        nil
      end
    end
  end
end
