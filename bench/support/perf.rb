# frozen_string_literal: true

require "support/packages"
require "tmpdir"

module Bench
  # Samples what processes are at, with perf(1): shares of one run, which other work on the machine hardly changes.
  class Perf
    class Failed < StandardError; end

    FREQUENCY = 2000 # samples a second of CPU time
    ROW = /\A\s*(\d+\.\d+)%\s*;\s*(\d+):[^;]*;([^;]*);\[.\] (\S+)/
    # The share of the CPU time, 0 to 1, that a function has taken in the threads of one name of a process.
    Row = Struct.new(:share, :pid, :thread, :function)

    def initialize
      @program = Packages.executable("perf", "linux-perf")
    end

    # @param pids [Array<Integer>]
    # @return [Array<Row>]
    # @raise [Failed] the kernel does not allow it
    def run(pids, seconds:)
      Dir.mktmpdir("pando-perf") do |folder|
        data = File.join(folder, "perf.data")
        said = output("record", "-q", "-e", "cpu-clock", "-F", FREQUENCY.to_s, "-o", data, "-p", pids.join(","),
                      "sleep", seconds.to_s)
        raise Failed, "perf: #{said.lines.first(2).join}" unless File.size?(data)

        rows(output("report", "-i", data, "--no-children", "--sort", "pid,comm,symbol", "--stdio", "-t", ";"))
      end
    end

    private

    def output(*arguments) = IO.popen([@program, *arguments], err: %i[child out], &:read)

    def rows(report)
      report.scrub.lines.filter_map do |line|
        share, pid, thread, function = line.match(ROW)&.captures
        Row.new(share.to_f / 100, pid.to_i, thread.strip, function) if share
      end
    end
  end
end
