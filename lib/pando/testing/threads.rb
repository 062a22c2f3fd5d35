# frozen_string_literal: true

require "pando/fork_safety/finding"

module Pando
  module Testing
    # The threads that forks have cost a run: those that nobody has started again in any later generation. Known by the
    # line that created them. Each generation has the ledger of its ancestors.
    #
    # @api private
    class Threads
      SITE = /\A#<.+?:0x\h+(?:@.*?)? (?<site>[^ ].*:\d+) [a-z_ ]+>\z/
      # They are started again on their next use, or by the plug.
      HARMLESS = %r{/minitest/parallel\.rb|/timeout\.rb|/drb/|/resolv\.rb|/monitor\.rb}
      private_constant :SITE, :HARMLESS

      # @return [Array<String>] "file:line" of each thread but the main one
      def self.sites
        (Thread.list - [Thread.main]).filter_map { |thread| thread.inspect[SITE, :site] }.grep_v(HARMLESS)
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
          ForkSafety::Finding.new(:lost_thread, subject: "thread", location: site,
                                                message: "A thread was running before a refork, and never after it.")
        end
      end

      private

      def note = @restarted |= @lost & self.class.sites
    end
  end
end
