# frozen_string_literal: true

module Bench
  # A load generator shares the CPUs with what it measures. It takes little, and what it takes it must get at once.
  module Priority
    HIGH = -15
    LOW = 19

    # @param level [Integer] as nice(1) has it
    # @param cores [String, nil] the only CPUs that it may use, as taskset(1) has them
    # @return [Array<String>] the beginning of a command line; where we may not raise the priority, without that
    def self.prefix(level, cores = nil)
      pinned = cores ? ["taskset", "-c", cores] : []
      return [*pinned, "chrt", "-r", level.negative? ? "20" : "1"] if real_time?

      level.negative? && !Process.uid.zero? ? pinned : [*pinned, "nice", "-n", level.to_s]
    end

    # Whether this program was started by chrt(1), so that nice values mean nothing: rt_priority in proc(5).
    def self.real_time? = File.read("/proc/self/stat").rpartition(") ").last.split[37].to_i.positive?
    private_class_method :real_time?
  end
end
