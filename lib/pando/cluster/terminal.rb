# frozen_string_literal: true

module Pando
  module Cluster
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
