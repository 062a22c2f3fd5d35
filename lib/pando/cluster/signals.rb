# frozen_string_literal: true

require "pando/sys/process_stat"

module Pando
  module Cluster
    # Turns signals to the monitor into bytes in a pipe, which its event loop reads: a handler may do no more than that.
    class Signals
      NAMES = %w[TERM QUIT INT USR2 TTIN TTOU CHLD HUP USR1].freeze
      # For a cluster that does jobs. Any other server it suspends, as the kernel does.
      QUIET = "TSTP"
      # Seconds within which a repeated signal to stop counts once. timeout(1) sends TERM to its child and then to the
      # process group, a container's supervisor may signal each process, and a shell passes on what a terminal has sent
      # to all of them. An operator who wants the second signal, "at once", is slower.
      ONE = 0.1
      STOPS = %w[TERM QUIT INT].freeze
      # If it is ignored, a write beyond RLIMIT_FSIZE fails with Errno::EFBIG, as on a full disk, and does not end the
      # process (setrlimit(2)). All children ignore it as well, since that survives fork and exec.
      IGNORED = "XFSZ"

      def initialize(quiet: false)
        @names = quiet ? [*NAMES, QUIET] : NAMES
        @reader, @writer = IO.pipe
        @noted_at = Array.new(@names.size, -Float::INFINITY)
      end

      def fileno = @reader.fileno

      def trap_all
        trap(IGNORED, "IGNORE")
        @names.each_with_index do |name, number|
          trap(name) { note(number) unless repeated?(name, number) }
        end
      end

      # @return [Array<String>] names, oldest first
      def take
        bytes = @reader.read_nonblock(256, exception: false)
        bytes.is_a?(String) ? bytes.bytes.filter_map { |number| @names[number] } : []
      end

      # @return [Boolean] whether a signal has come that is not obeyed yet
      def waiting?
        come = take
        remember(come)
        (come - ["CHLD"]).any?
      end

      # Keeps signals that are not obeyed yet.
      def remember(names) = (names & @names).each { |name| note(@names.index(name)) }

      def release
        @names.each { |name| trap(name, "DEFAULT") }
        [@reader, @writer].each(&:close)
      end

      private

      def note(number) = @writer.write_nonblock(number.chr, exception: false)

      # Runs in the handler, which knows best when a signal has come. The first one counts.
      def repeated?(name, number)
        now = Sys.now
        return true if STOPS.include?(name) && now - @noted_at[number] < ONE

        @noted_at[number] = now
        false
      end
    end

    # Obeys signals to the monitor. Owned by the monitor.
    class SignalOrders
      # Seconds in which Pando checks repeatedly whether a ^C was meant for a debugger, while a request runs. A debugger
      # switches the terminal's echo on for a moment after each line, and a ^C ends a line.
      DOUBT = 0.5
      LOOKS = 0.05 # seconds between two checks
      # Seconds after which HUP is obeyed again if the kernel has refused what that takes.
      PAUSE = 0.25

      # @param jobs [Boolean] whether it only does jobs: then some signals have their usual meaning for job processors
      def initialize(monitor, jobs: false, terminal: Terminal.new)
        @monitor = monitor
        @jobs = jobs
        @terminal = terminal
      end

      def due = [*(@look_at if @doubt_until), *@reload_at].min

      def proceed
        hang_up if @reload_at && Sys.now >= @reload_at
        return if @doubt_until.nil? || Sys.now < @look_at
        return @doubt_until = nil if typed_at_prompt?
        return @look_at = Sys.now + LOOKS if busy? && Sys.now < @doubt_until

        @doubt_until = nil
        interrupt
      end

      def obey(signal)
        case signal
        when "TERM", "INT", "QUIT" then stop(signal)
        when "TTIN" then @jobs ? show_stacks : scale(1)
        when "TTOU" then scale(-1) unless @jobs
        when "USR1" then reopen_log
        else change(signal) unless ending?
        end
      end

      private

      def change(signal)
        case signal
        when "HUP" then hang_up
        when "USR2" then refork
        when Signals::QUIET then @monitor.quiet.begin(signal)
        end
      end

      # Reloads, unless the signal says that the terminal has gone. That takes a descriptor.
      def hang_up
        @reload_at = nil
        @monitor.reload.request("HUP") unless ending? || @terminal.lost?
      rescue *Terminal::REFUSALS
        @reload_at = Sys.now + PAUSE
      end

      def show_stacks = @monitor.roster.ready_workers.each { |worker| worker.signal("TTIN") }
      def ending? = @monitor.ending?

      def refork
        pools = @monitor.pools
        pools.each { |pool| pools.about(pool) { pool.generations.refork("USR2") } }
      end

      # Puma loads a new release at this signal. Scripts that were made for it end well, and the old release serves on.
      def reopen_log
        return @monitor.reactors.reopen_log if @monitor.reactors.log?

        Events.emit("signal.ignored", name: "USR1", reason: "it opens the access log anew, and there is none",
                                      advice: "to load a new release, send HUP or run `pando reload`")
      end

      # Scales the first pool. `pando scale` scales any pool.
      def scale(more) = @monitor.rollout.scale(@monitor.rollout.size + more)

      # ^C at the prompt of a debugger is meant for the debugger, and the request that it has stopped is still busy.
      def typed_at_prompt? = busy? && @terminal.prompt?

      def busy? = @monitor.roster.workers.any? { |worker| worker.row.busy_since }

      def stop(signal)
        return interrupted if signal == "INT" && @terminal.had?
        return interrupt if signal == "INT"
        return @monitor.drain.stop(signal) unless ending?
        return if signal == "QUIT" # QUIT never hurries a stop

        shutdown = @monitor.shutdown
        shutdown.begun? ? shutdown.at_once(signal) : @monitor.drain.stop(signal)
      end

      # A ^C at the terminal. A second one is certainly meant for the server.
      def interrupted
        return if typed_at_prompt?
        return interrupt if @doubt_until || @monitor.shutdown.begun? || !busy?

        @doubt_until = Sys.now + DOUBT
        @look_at = Sys.now + LOOKS
      end

      def interrupt
        shutdown = @monitor.shutdown
        shutdown.begun? ? shutdown.at_once("INT") : shutdown.quickly("INT")
      end
    end

    # The terminal that the server was started from, if any. When it is closed the kernel sends the SIGHUP that an
    # operator means as an order to reload (credentials(7)). Owned by the monitor.
    class Terminal
      # Then the kernel has not said whether there is one.
      REFUSALS = [Errno::EMFILE, Errno::ENFILE, Errno::ENOMEM].freeze

      # @raise [SystemCallError] the kernel refuses a descriptor or memory
      def self.there?
        File.open("/dev/tty", File::RDONLY | File::NOCTTY, &:tty?)
      rescue *REFUSALS
        raise
      rescue SystemCallError
        false
      end

      def initialize
        @had = Terminal.there?
      rescue *REFUSALS
        @had = false # no reason not to start
      end

      # A line editor, such as that of `binding.irb` or a debugger, switches the echo off while it reads a line. It
      # treats ^C as one of its keys, which the terminal sends to all processes.
      #
      # @return [Boolean] whether one of our processes reads from the terminal in this way
      def prompt?
        return false unless @had

        require "io/console"
        File.open("/dev/tty", File::RDWR | File::NOCTTY) { |tty| !tty.echo? } && foreground?
      rescue SystemCallError, LoadError
        false
      end

      def had? = @had

      # @return [Boolean] once: whether it has gone since it was asked last
      # @raise [SystemCallError] see .there?
      def lost?
        lost = @had && !Terminal.there?
        @had &&= !lost
        lost
      end

      private

      def foreground? = Sys::ProcessStat.read("self")&.foreground_group == Process.getpgrp
    end

    # Handles TERM or QUIT that a mold or worker got from outside. If the signal went to every process of the server (a
    # control group, the group of a shell), the monitor's own is about to come, and they serve until the stop. A process
    # that alone got it is replaced. Owned by a Pool, in the monitor.
    class ExternalSignals
      # Seconds within which all processes have got it.
      SPREAD = 1.0

      def initialize(rollout, generations, options)
        @rollout = rollout
        @generations = generations
        @options = options
        @asked = {}
      end

      def add(child, signal)
        @asked[child] ||= [Sys.now + SPREAD, signal] if child.ready? && !child.service?
      end

      def reconcile(now = Sys.now)
        @asked.select { |_, (due, _)| now >= due }.each do |child, (_, signal)|
          @asked.delete(child)
          dismiss(child, signal) if child.ready?
        end
      end

      # The server is about to stop: the processes that got the signal serve until then.
      def forget = @asked.clear

      def due = @asked.each_value.map(&:first).min

      private

      def dismiss(child, signal)
        if child.worker?
          @generations.worker_leaves(child, signal)
          @rollout.ask_to_leave(child, signal)
        else
          child.ask_to_leave(signal, Sys.now + @options.stop_timeout)
        end
      end
    end
  end
end
