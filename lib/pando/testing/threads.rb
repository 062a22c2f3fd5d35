# frozen_string_literal: true

require "pando/fork_safety/finding"

module Pando
  module Testing
    # The threads that a fork has cost: those that ran before, and that nobody has started again when the generation
    # ends. Known by the line that created them.
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
        @before = self.class.sites
      end

      # @return [Array<ForkSafety::Finding>]
      def lost
        (@before.uniq - self.class.sites).map do |site|
          ForkSafety::Finding.new(:lost_thread, subject: "thread", location: site,
                                                message: "A thread was running before the refork, and none after it.")
        end
      end
    end
  end
end
