# frozen_string_literal: true

require "pando/fork_safety/examination/debugger"
require "pando/fork_safety/examination/memory_map"
require "pando/fork_safety/examination/thread_at"

module Pando
  module ForkSafety
    # Describes where another process hangs, and in which lock, as far as /proc and a debugger
    # tell. Any of this may be forbidden (ptrace(2), "ptrace access mode") or take long, so it
    # runs in a process of its own. It loads nothing but itself.
    #
    #   puts ForkSafety::Examination.new(pid).text
    #
    # @api private
    class Examination
      # The most threads to describe.
      THREADS = 16

      # @param pid [Integer]
      def initialize(pid)
        @pid = pid
      end

      # @return [String] lines
      def text
        found = threads
        stack = Debugger.stack(@pid)
        stack = found.flat_map(&:stack) if stack.empty?
        [*found.flat_map(&:lines), *stack].join("\n")
      rescue SystemCallError => e
        "/proc/#{@pid} cannot be read: #{e.message}"
      end

      private

      def threads
        map = MemoryMap.of(@pid)
        tasks = Dir.children("/proc/#{@pid}/task").map(&:to_i).sort
        tasks.first(THREADS).map { |task| ThreadAt.new(@pid, task, map) }
      end
    end
  end
end
