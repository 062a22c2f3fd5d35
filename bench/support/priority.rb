# frozen_string_literal: true

module Bench
  # A load generator shares the CPUs with the server that it measures. It needs little CPU time, but must get it at
  # once.
  module Priority
    HIGH = -15
    LOW = 19

    # @param level [Integer] as for nice(1)
    # @param cores [String, nil] the only CPUs that it may use, as for taskset(1)
    # @return [Array<String>] the beginning of a command line; does not raise the priority without the right to
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
