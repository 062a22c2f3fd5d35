# frozen_string_literal: true

require "pando/fork_safety/audit/live_thread"
require "pando/fork_safety/finding"

module Pando
  module Testing
    # The threads that forks have cost a run: those that nobody has started again in any later generation. Known by the
    # line that created them. Each generation has the ledger of its ancestors.
    #
    # @api private
    class Threads
      # They are started again on their next use, or by the plug.
      HARMLESS = %r{/minitest/parallel\.rb|/timeout\.rb|/drb/|/resolv\.rb|/monitor\.rb}
      private_constant :HARMLESS

      # @return [Array<String>] "file:line" of each thread but the main one
      def self.sites
        others = Thread.list - [Thread.main]
        others.filter_map { |thread| ForkSafety::Audit::LiveThread.site(thread) }.grep_v(HARMLESS)
      end

      def initialize
        @lost = []
        @restarted = []
      end

      # In the forker, before it forks.
      # @return [nil]
      def before_fork
        note
        @lost |= self.class.sites
        nil
      end

      # When the last test of the run is done.
      # @return [Array<ForkSafety::Finding>]
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
