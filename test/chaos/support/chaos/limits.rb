# frozen_string_literal: true

require "open3"

module Chaos
  # The kernel's limits for running processes, see prlimit(2). Only soft ones, so that they can be raised again.
  class Limits
    # Option of prlimit(1) => name in /proc/PID/limits
    NAMES = { "nproc" => "Max processes", "nofile" => "Max open files", "as" => "Max address space" }.freeze

    # @param stage [Stage] the processes run as its user
    def initialize(stage)
      @stage = stage
    end

    # @return [Integer, String] the previous limit
    def lower(pid, name, value)
      soft(pid, name).tap { set(pid, name, value) }
    end

    # For all processes of the server: children have inherited the limit meanwhile, and new ones may be under way.
    def raise_again(name, low, value)
      5.times do
        lowered = @stage.processes.select { |process| soft(process.pid, name) == low.to_s }
        break if lowered.empty?

        lowered.each { |process| set(process.pid, name, value) }
      end
    end

    # @return [String, nil] nil: the process has ended
    def soft(pid, name)
      File.read("/proc/#{pid}/limits")[/^#{NAMES.fetch(name)}\s+(\S+)/, 1]
    rescue SystemCallError
      nil
    end

    private

    def set(pid, name, value)
      output, status = Open3.capture2e(*@stage.as_its_user, "prlimit", "--pid=#{pid}", "--#{name}=#{value}:")
      raise output unless status.success? || !File.exist?("/proc/#{pid}")
    end
  end
end
