# frozen_string_literal: true

require "open3"

module Chaos
  # The kernel's limits for processes that run, see prlimit(2). Only soft ones, so that they can be raised again.
  class Limits
    # As an option of prlimit(1) => its name in /proc/PID/limits
    NAMES = { "nproc" => "Max processes", "nofile" => "Max open files", "as" => "Max address space" }.freeze

    # @param stage [Stage] whose user's processes they are
    def initialize(stage)
      @stage = stage
    end

    # @return [Integer, String] the one before
    def lower(pid, name, value)
      soft(pid, name).tap { set(pid, name, value) }
    end

    # In all processes of the server: children have inherited it meanwhile, and theirs may be under way.
    def raise_again(name, low, value)
      5.times do
        lowered = @stage.processes.select { |process| soft(process.pid, name) == low.to_s }
        break if lowered.empty?

        lowered.each { |process| set(process.pid, name, value) }
      end
    end

    # @return [String, nil] nil: the process is gone
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
