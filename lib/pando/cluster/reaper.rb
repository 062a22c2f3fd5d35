# frozen_string_literal: true

module Pando
  module Cluster
    # Reaps processes: the known children, through their pidfds, and orphans that the application's own children left to
    # the monitor as their subreaper. Owned by the monitor.
    class Reaper
      extend Serializable

      serialize_as "reaper", strangers: :integer

      # More packets than the kernel queues on a link.
      WHOLE_LINK = 10_000

      attr_reader :strangers

      # @yieldparam pid [Integer] of a dead process that is none of the children
      def initialize(roster, inbox, pools, &reap_other)
        @roster = roster
        @inbox = inbox
        @pools = pools
        @reap_other = reap_other
        @strangers = 0
      end

      # The child's pidfd is readable: its process is dead.
      def reap(child)
        return if child.gone?

        ending = child.pidfd.reap
        return unless ending

        @inbox.read(child, WHOLE_LINK)
        @pools.tell(child, :child_lost, ending) unless child.gone?
      end

      # Reaps all dead children, also those without a pidfd here.
      def reap_orphans
        while (pid = Sys.ended_child)
          child = @roster.by_pid(pid)
          next reap(child) if child
          next if @reap_other&.call(pid)

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
