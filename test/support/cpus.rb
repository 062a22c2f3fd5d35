# frozen_string_literal: true

require_relative "programs"

module Support
  # The CPUs that this process may run on, and the kernel's count of their time.
  module CPUs
    # @return [Array<Integer>] the numbers of those that are online (Cpus_allowed_list is "0-3,8": man 5 proc)
    def self.allowed(status = "/proc/self/status", stat = "/proc/stat")
      online = times(stat).keys
      list = File.read(status)[/^Cpus_allowed_list:\s*(\S+)/, 1] or return online
      ranges = list.split(",").map { |range| Range.new(*range.split("-").values_at(0, -1).map(&:to_i)) }
      online.select { |number| ranges.any? { |range| range.cover?(number) } }
    end

    # @return [Hash{Integer => Array<Integer>}] the figures of each one that is online, in ticks (man 5 proc)
    def self.times(stat = "/proc/stat")
      File.foreach(stat).grep(/\Acpu\d/).to_h do |line|
        name, *figures = line.split
        [name.delete_prefix("cpu").to_i, figures.map(&:to_i)]
      end
    end
  end

  # The time in which these CPUs have nothing to do.
  class IdleCPUs
    IDLE = 3
    # Further figures count parts of the first ones again.
    DISTINCT = 8

    # @param allowed [Array<Integer>]
    def initialize(allowed = CPUs.allowed, stat: "/proc/stat")
      @allowed = allowed
      @stat = stat
      @before = read
    end

    # @return [Float] how many of them have been idle on average since the last call
    def count
      now = read
      idle, all = now.zip(@before).map { |after, before| after - before }
      @before = now
      all.positive? ? idle * @allowed.size / all.to_f : 0.0
    end

    private

    def read
      times = CPUs.times(@stat).values_at(*@allowed).compact
      [times.sum { |figures| figures[IDLE] }, times.sum { |figures| figures.first(DISTINCT).sum }]
    end
  end

  # The CPUs that test processes are pinned to, each to the one with the fewest. A process that runs on several CPUs
  # interrupts the others whenever its memory's mapping changes. On a virtual machine this takes up to 40% of its time.
  class PinnedCPUs
    # @return [Boolean] whether processes can be pinned here
    def self.possible? = !Programs.find("taskset").nil?

    # @param allowed [Array<Integer>]
    def initialize(allowed = CPUs.allowed)
      @held = allowed.to_h { |number| [number, 0] }
      @lock = Mutex.new
    end

    # @yieldparam cpu [Integer] its number
    def hold
      cpu = @lock.synchronize { @held.min_by(&:last).first.tap { |number| @held[number] += 1 } }
      yield cpu
    ensure
      @lock.synchronize { @held[cpu] -= 1 } if cpu
    end
  end
end
