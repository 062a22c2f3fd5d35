# frozen_string_literal: true

require "io/wait"
require "pando/native"
require "pando/sys/pidfd"

module Pando
  # A handle on one process that a recycled pid cannot mislead (pidfd_open(2)): a child of this process or any other
  # process. You can use it with or without the server: `require "pando/pidfd"` loads nothing else.
  #
  #     worker = Pando::Pidfd.new(fork { work })
  #     worker.alive?           # => true
  #     worker.signal("TERM")   # => true
  #     worker.wait(5) || worker.signal("KILL")
  #     worker.cleanup.to_s     # => "signal TERM": no zombie and no descriptor is left
  #     worker.alive?           # => false
  #
  # By the time a pid is used, it may belong to another process. A Pidfd always refers to the process that had the pid
  # when it was created. A child's pid is safe until somebody waits for the child, so create its Pidfd before that.
  #
  # Threads and fibers can wait at the same time: a wait releases the interpreter lock, and uses the fiber scheduler if
  # there is one. The descriptor is closed by {#close}, {#cleanup} or the garbage collector, and by every exec. A child
  # that is forked later may use its copy to check the process and to signal it, but only the process's parent learns
  # how it ended.
  class Pidfd
    # How a process ended: `success?`, `killed?`, `known?`, `kind` (:exited, :killed, :unknown), `number` of the status
    # or signal, `to_s`.
    Ending = Sys::Ending

    # The range of the kernel's pid_t.
    PIDS = (1..((2**31) - 1))
    # The range of the kernel's signals; 0 only checks whether this process may signal that one.
    SIGNALS = (0..64)

    class << self
      # @return [Boolean] whether the kernel supports it (Linux 5.4) and no sandbox forbids it
      def supported?
        probe = Sys::Pidfd.new(Process.pid)
        Sys.pidfd_wait(probe.to_io)
      rescue Errno::ECHILD
        true # P_PIDFD is supported; the error only says that we are not our own child
      rescue Errno::ENOSYS, Errno::EPERM, Errno::EINVAL
        false
      ensure
        probe&.close
      end
    end

    # @return [Integer]
    attr_reader :pid
    # @return [Ending, nil] nil until a call on this object has noticed the end
    attr_reader :ending

    # @param pid [Integer] of a process, not of one of its threads
    # @raise [ArgumentError] it is not a pid
    # @raise [Errno::ESRCH] there is no such process, or no longer
    # @raise [Errno::EINVAL] it is a thread; Linux 6.9 and newer: Errno::ENOENT
    # @raise [Errno::EMFILE, Errno::ENOSYS] no descriptor is left; the kernel does not support pidfds
    def initialize(pid)
      raise ArgumentError, "not a pid: #{pid.inspect}" unless pid.is_a?(Integer) && PIDS.cover?(pid)

      @pid = pid
      @process = Sys::Pidfd.new(pid)
      @reaping = Mutex.new
    rescue Errno::ESRCH
      raise Errno::ESRCH, "process #{pid}", cause: nil
    end

    # @return [Boolean] false as soon as the process has ended, even if its zombie is not reaped yet
    # @raise [IOError] the descriptor was closed before the end was known
    def alive? = @ending.nil? && !ended?(0)

    # @param signal [String, Symbol, Integer] "TERM", "SIGTERM", :TERM or 15
    # @return [Boolean] false: the process has ended; a process that has its pid now is not signalled
    # @raise [ArgumentError] there is no such signal
    # @raise [Errno::EPERM] the process is another user's
    # @raise [IOError] the descriptor was closed before the end was known
    def signal(signal)
      number = number_of(signal)
      alive? && Sys.pidfd_signal(@process.to_io, number)
    end

    # Waits for the end of the process, and reaps it if it is a child of this process, so that no zombie is left.
    #
    # @param timeout [Numeric, nil] seconds; nil: no limit
    # @return [Ending, nil] nil: it is still running. `known?` is false for a process that is not a child of this one,
    #   and for a child that was waited for elsewhere (Process.wait, or SIGCHLD ignored)
    # @raise [IOError] the descriptor was closed before the end was known, or while waiting
    def wait(timeout = nil)
      return @ending if @ending
      return unless ended?(timeout)

      @reaping.synchronize { @ending ||= @process.reap }
    rescue IOError
      @ending || raise # another thread has noticed the end, and closed the descriptor
    end

    # Waits as {#wait} does, then closes the descriptor. Only {#ending} is left.
    #
    # @param timeout [Numeric, nil] seconds; nil: no limit
    # @return [Ending, nil] nil: it is still running, and the descriptor stays open
    def cleanup(timeout = nil) = wait(timeout)&.tap { close }

    # @return [IO] readable once the process has ended: for IO.select, `wait_readable` or an event loop. Do not read
    #   from it
    # @raise [IOError] closed
    def to_io
      raise IOError, "the Pidfd of process #{pid} is closed" if closed?

      @process.to_io
    end

    # Closes the descriptor, whatever the process does. If it is a child, the caller must wait for it by its pid.
    #
    # @return [void]
    def close = @process.close

    # @return [Boolean]
    def closed? = @process.to_io.closed?

    def inspect = "#<#{self.class} #{pid} #{state}>"

    private

    # A pidfd becomes readable when the process ends: pidfd_open(2).
    def ended?(timeout) = !to_io.wait_readable(timeout).nil?

    def number_of(signal)
      number = signal.is_a?(Integer) ? signal : Signal.list[signal.to_s.delete_prefix("SIG")]
      return number if SIGNALS.include?(number)

      raise ArgumentError, "no such signal: #{signal.inspect}"
    end

    def state
      return ending.to_s if ending
      return "closed" if closed?

      alive? ? "alive" : "ended"
    end
  end
end
