# frozen_string_literal: true

require "pando/fork_safety/audit/live_thread"
require "pando/fork_safety/finding"

module Pando
  module Testing
    # The threads that a run has lost to forks, because nothing started them again in a later generation. They are
    # identified by the line that created them. Each generation has the list of its ancestors.
    class Threads
      # The next use, or the plug, starts these again.
      HARMLESS = %r{/minitest/parallel\.rb|/timeout\.rb|/drb/|/resolv\.rb|/monitor\.rb}
      private_constant :HARMLESS

      # @return [Array<String>] "file:line" of each thread except the main one
      def self.sites
        others = Thread.list - [Thread.main]
        others.filter_map { |thread| ForkSafety::Audit::LiveThread.site(thread) }.grep_v(HARMLESS)
      end

      def initialize
        @lost = []
        @restarted = []
      end

      # Called in the forking process, before the fork.
      def before_fork
        note
        @lost |= self.class.sites
        nil
      end

      # Called after the last test of the run.
      def findings
        note
        (@lost - @restarted).map do |site|
          ForkSafety::Finding.new(:lost_thread, severity: :warning, subject: "thread", location: site,
                                                message: "A thread was running before a refork, and never after it.")
        end
      end

      private

      def note = @restarted |= @lost & self.class.sites
    end
  end
end
