# frozen_string_literal: true

require "pando/cluster/serializable"

module Pando
  module Cluster
    # Buries processes: the children we know, through their pidfd, and the
    # strangers that the app's own children left to us as their subreaper.
    #
    # Owned by the monitor.
    #
    # @api private
    class Reaper
      extend Serializable

      serialize_as "reaper", strangers: :integer

      # More packets than the kernel queues on a link.
      LAST_WORDS = 10_000

      # @return [Integer] strangers reaped so far
      attr_reader :strangers

      def initialize(roster, inbox, observer)
        @roster = roster
        @inbox = inbox
        @observer = observer
        @strangers = 0
      end

      # A pidfd is readable: its process is dead.
      def bury(child)
        return if child.gone?

        ending = child.pidfd.reap
        return unless ending

        @inbox.read(child, LAST_WORDS)
        @observer.child_lost(child, ending) unless child.gone?
      end

      # Everybody dead that no pidfd of ours is about.
      def bury_strangers
        while (pid = Sys.ended_child)
          child = @roster.by_pid(pid)
          next bury(child) if child

          Process.wait(pid, Process::WNOHANG)
          @strangers += 1
          Events.emit("orphan.reaped", pid: pid, total: @strangers)
        end
      rescue Errno::ECHILD
        nil
      end
    end
  end
end
