# frozen_string_literal: true

module Pando
  module Cluster
    # What a signal to the monitor means.
    #
    # Owned by the monitor.
    #
    # @api private
    class SignalOrders
      # Seconds for which Pando goes on asking whether a ^C was meant for a debugger, while a request runs. A debugger
      # switches the terminal's echo on for a moment after each line, and a ^C ends a line.
      DOUBT = 0.5
      LOOKS = 0.05 # seconds between two questions

      # @param cluster [Monitor]
      # @param jobs [Boolean] whether it does nothing but jobs: then some signals mean what they do to job processors
      # @param terminal [Terminal]
      def initialize(cluster, jobs: false, terminal: Terminal.new)
        @cluster = cluster
        @jobs = jobs
        @terminal = terminal
      end

      # @return [Float, nil] when to look again whether a ^C was meant for a debugger, on Sys.now
      def due = (@look_at if @doubt_until)

      # Called at each turn of the monitor's loop.
      def proceed
        return if @doubt_until.nil? || Sys.now < @look_at
        return @doubt_until = nil if typed_at_prompt?
        return @look_at = Sys.now + LOOKS if busy? && Sys.now < @doubt_until

        @doubt_until = nil
        interrupt
      end

      # @param signal [String]
      def obey(signal)
        case signal
        when "TERM", "INT", "QUIT" then stop(signal)
        when "TTIN" then @jobs ? show_stacks : scale(1)
        when "TTOU" then scale(-1) unless @jobs
        else change(signal) unless ending?
        end
      end

      private

      def change(signal)
        case signal
        when "HUP" then @cluster.reload.request("HUP") unless @terminal.lost?
        when "USR2" then refork
        when Signals::QUIET then @cluster.quiet.begin(signal)
        end
      end

      def show_stacks = @cluster.roster.ready_workers.each { |worker| worker.signal("TTIN") }
      def ending? = @cluster.ending?

      def refork
        pools = @cluster.pools
        pools.each { |pool| pools.about(pool) { pool.generations.refork("USR2") } }
      end

      # The first pool: which of several kinds there are more of is for `pando scale` to say.
      def scale(more) = @cluster.rollout.resize(@cluster.rollout.size + more)

      # ^C at the prompt of a debugger is meant for the debugger, and the request that it has stopped is still busy.
      def typed_at_prompt? = busy? && @terminal.prompt?

      def busy? = @cluster.roster.workers.any? { |worker| worker.row.busy_since }

      def stop(signal)
        return interrupted if signal == "INT" && @terminal.had?
        return interrupt if signal == "INT"
        return @cluster.drain.stop(signal) unless ending?
        return if signal == "QUIT" # nobody is in a hurry

        shutdown = @cluster.shutdown
        shutdown.begun? ? shutdown.at_once(signal) : @cluster.drain.stop(signal)
      end

      # By whoever sits at the terminal. A second ^C leaves no doubt.
      def interrupted
        return if typed_at_prompt?
        return interrupt if @doubt_until || @cluster.shutdown.begun? || !busy?

        @doubt_until = Sys.now + DOUBT
        @look_at = Sys.now + LOOKS
      end

      def interrupt
        shutdown = @cluster.shutdown
        shutdown.begun? ? shutdown.at_once("INT") : shutdown.quickly("INT")
      end
    end

    # The terminal that the server was started from, if any. When it is closed the kernel sends the SIGHUP
    # that an operator means as an order to reload (credentials(7)).
    #
    # Owned by the monitor.
    #
    # @api private
    class Terminal
      # @return [Boolean]
      def self.there?
        File.open("/dev/tty", File::RDONLY | File::NOCTTY, &:tty?)
      rescue SystemCallError
        false
      end

      def initialize
        @had = Terminal.there?
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

      # @return [Boolean] whether the server was started from one
      def had? = @had

      # @return [Boolean] once: whether it has gone since it was asked last
      def lost?
        lost = @had && !Terminal.there?
        @had &&= !lost
        lost
      end

      private

      # Field 8 of proc_pid_stat(5) is the terminal's foreground process group.
      def foreground?
        fields = File.read("/proc/self/stat").rpartition(") ").last.split
        fields[5].to_i == Process.getpgrp
      end
    end
  end
end
