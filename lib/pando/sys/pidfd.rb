# frozen_string_literal: true

module Pando
  module Sys
    # How a process ended: by itself with a status, or by a signal. It is unknown if another process waited for it.
    Ending = Struct.new(:kind, :number) do
      def success? = kind == :exited && number.zero?
      def killed? = kind == :killed
      # False if another waited for it, or it was not a child of this process.
      def known? = kind != :unknown
      # Whether it was a signal that nobody sends to end a process.
      def crash? = killed? && !%w[KILL TERM INT HUP QUIT].include?(Signal.signame(number))

      def to_s
        case kind
        when :exited then "status #{number}"
        when :killed then "signal #{Signal.signame(number) || number}"
        else "status unknown"
        end
      end
    end

    # A handle on one process that a recycled pid cannot mislead (pidfd_open(2)). Readable in a Poller once the process
    # has ended.
    class Pidfd
      attr_reader :pid

      # @param pid [Integer] a child of this process
      # @raise [Errno::ESRCH] no such process
      # @raise [Errno::ECHILD] not a child of this process
      def self.of_child(pid)
        pidfd = new(pid)
        Sys.pidfd_wait(pidfd, true)
        pidfd
      rescue Errno::ECHILD
        pidfd.close
        raise
      end

      # @param number [Integer, nil] a pidfd that this process already has; nil: open a new one
      def initialize(pid, number = nil)
        @pid = pid
        @io = IO.for_fd(number || Sys.pidfd_open(pid))
      end

      # @return [IO] readable once the process has ended
      def to_io = @io
      def fileno = @io.fileno

      # @return [Boolean] false if the process has been reaped already, or belongs to another user now
      def signal(name)
        Sys.pidfd_signal(@io, Signal.list.fetch(name))
      rescue Errno::EPERM
        false
      end

      # @return [Ending, nil] nil while it is running; otherwise this call has reaped it
      def reap
        ending = Sys.pidfd_wait(@io)
        ending && Ending.new(*ending)
      rescue Errno::ECHILD
        Ending.new(:unknown) # a hook waited for any child and got this one
      end

      def close = @io.close
    end
  end
end
