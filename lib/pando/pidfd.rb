# frozen_string_literal: true

require "io/wait"
require "pando/native"
require "pando/sys/pidfd"

module Pando
  # One process, held by a descriptor that no recycled pid can mislead (pidfd_open(2)): a child of this process, or
  # any other. For anybody's use, with or without the server: `require "pando/pidfd"` loads no more than this.
  #
  #     worker = Pando::Pidfd.new(fork { work })
  #     worker.alive?           # => true
  #     worker.signal("TERM")   # => true
  #     worker.wait(5) || worker.signal("KILL")
  #     worker.cleanup.to_s     # => "signal TERM": no zombie and no descriptor is left
  #     worker.alive?           # => false
  #
  # A pid may mean another process by the time it is used; what is held here is what it meant when it was made. A
  # child's pid is safe until somebody waits for the child, so take its Pidfd before that.
  #
  # Threads and fibers may wait side by side: a wait gives the interpreter to others, and goes to the fiber's scheduler
  # where there is one. The descriptor is closed by {#close}, {#cleanup} or the collector, and by every exec.
  # A child that is forked later may use its copy to look and to signal; how the process ended only its parent learns.
  class Pidfd
    # How a process ended: `success?`, `killed?`, `known?`, `kind` (:exited, :killed, :unknown), `number` of the status
    # or signal, `to_s`.
    Ending = Sys::Ending

    # What the kernel has: pid_t.
    PIDS = (1..((2**31) - 1))
    # What the kernel takes: 0 only asks whether this process may signal that one.
    SIGNALS = (0..64)

    class << self
      # @return [Boolean] whether this kernel has what is needed (Linux 5.4), and no sandbox forbids it
      def supported?
        probe = Sys::Pidfd.new(Process.pid)
        Sys.pidfd_wait(probe.to_io)
      rescue Errno::ECHILD
        true # P_PIDFD is known: we are not our own child
      rescue Errno::ENOSYS, Errno::EPERM, Errno::EINVAL
        false
      ensure
        probe&.close
      end
    end

    # @return [Integer]
    attr_reader :pid
    # @return [Ending, nil] nil as long as nobody has asked here after its end
    attr_reader :ending

    # @param pid [Integer] of a process, not of one of its threads
    # @raise [ArgumentError] that is no pid
    # @raise [Errno::ESRCH] there is no such process (any more)
    # @raise [Errno::EINVAL] it is a thread; Linux 6.9 and newer: Errno::ENOENT
    # @raise [Errno::EMFILE, Errno::ENOSYS] no descriptor is left; the kernel has no pidfds
    def initialize(pid)
      raise ArgumentError, "not a pid: #{pid.inspect}" unless pid.is_a?(Integer) && PIDS.cover?(pid)

      @pid = pid
      @process = Sys::Pidfd.new(pid)
      @reaping = Mutex.new
    rescue Errno::ESRCH
      raise Errno::ESRCH, "process #{pid}", cause: nil
    end

    # @return [Boolean] false from the moment it has ended, also while its zombie waits to be reaped
    # @raise [IOError] closed before the end was known
    def alive? = @ending.nil? && !ended?(0)

    # @param signal [String, Symbol, Integer] "TERM", "SIGTERM", :TERM or 15
    # @return [Boolean] false: it has ended; whoever has its pid now is not concerned
    # @raise [ArgumentError] there is no such signal
    # @raise [Errno::EPERM] the process is another user's
    # @raise [IOError] closed before the end was known
    def signal(signal)
      number = number_of(signal)
      alive? && Sys.pidfd_signal(@process.to_io, number)
    end

    # Waits for its end, and reaps it if it is a child of this process: there is no zombie then.
    #
    # @param timeout [Numeric, nil] seconds; nil: as long as it takes
    # @return [Ending, nil] nil: it lives on. `known?` is false for what is not a child of this process, and for a child
    #   that was waited for elsewhere (Process.wait, or SIGCHLD ignored)
    # @raise [IOError] closed before the end was known, or while waiting
    def wait(timeout = nil)
      return @ending if @ending
      return unless ended?(timeout)

      @reaping.synchronize { @ending ||= @process.reap }
    rescue IOError
      @ending || raise # another thread has heard of it too, and cleaned up
    end

    # Waits as {#wait} does, then closes the descriptor: nothing is left of it but {#ending}.
    #
    # @param timeout [Numeric, nil] seconds; nil: as long as it takes
    # @return [Ending, nil] nil: it lives on, and nothing is closed
    def cleanup(timeout = nil) = wait(timeout)&.tap { close }

    # @return [IO] readable once the process has ended: for IO.select, `wait_readable`, an event loop. Not for reading
    # @raise [IOError] closed
    def to_io
      raise IOError, "the Pidfd of process #{pid} is closed" if closed?

      @process.to_io
    end

    # Lets go of the process, whatever it does. A child is then to be waited for by its pid.
    #
    # @return [void]
    def close = @process.close

    # @return [Boolean]
    def closed? = @process.to_io.closed?

    def inspect = "#<#{self.class} #{pid} #{state}>"

    private

    # Reading means the end: pidfd_open(2).
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
