# frozen_string_literal: true

require "socket"
require "pando/errors"
require "pando/fork_safety"
require "pando/sys"

module Pando
  module Testing
    # A forked process ended before it could take over; the forking process goes on.
    class Stillborn < Error; end

    # The processes of a run, one after another. At most three of them exist at a time:
    #
    #   first     the process that the user started and waits for. It guards the line, and does nothing else.
    #   witness   the last process that reforked. It waits, and takes over if its heir crashes.
    #   living    runs the tests, and finally reports and exits.
    #
    # The other two are children of the first, as workers are children of the monitor. Results need no transport,
    # because the heir has its ancestor's memory. Waiting processes hold the interpreter's lock, so their threads do not
    # run.
    class Line
      ADOPTED_WITHIN = 10 # seconds
      private_constant :ADOPTED_WITHIN

      # @return [Array<IO>] IOs that must stay open, whatever the app closes
      attr_reader :ios

      def initialize
        @first = Process.pid
        @guard, @others = UNIXSocket.pair(:SEQPACKET)
        @ios = [@guard, @others]
        Pando.keep_io(*@ios)
        Sys.subreaper!
      end

      # Forks, and goes on in the child.
      #
      # @return [nil, Integer] nil in the heir. The forking process returns only if its heir crashed: with the signal
      # @raise [Stillborn] in the forking process: the heir ended before it took over
      # @raise [SystemCallError] in the forking process: the fork failed
      def go_on
        cradle, cry = IO.pipe
        unless fork_off
          be_born(cradle, cry)
          return
        end
        cry.close
        stand_by(await(cradle))
      end

      # Forks a child that is not a generation of the line. It ends when the first process does.
      #
      # @yield in the child, which exits when the block returns
      def fork_aside
        return if fork_off

        begin
          adopted
          yield
        ensure
          exit!(0)
        end
      end

      private

      # @return [Boolean] true in the forking process; the child must call the libraries' callbacks
      def fork_off
        Sys.probe_fork
        ForkSafety::Audit.census
        ForkSafety::Libraries.around_fork { ForkSafety::Callbacks.hold_child { Sys.fork_sibling } }
      end

      def be_born(cradle, cry)
        cradle.close
        adopted
        Sys.announce(@others)
        cry.write(Process.pid)
        cry.close
      rescue SystemCallError => e
        warn "pando: a new generation could not start: #{e.message}"
        exit!(1)
      end

      def adopted
        Sys.wait_adoption(@first, ADOPTED_WITHIN)
        Sys.die_with_parent!
        exit!(1) unless Sys.parent_pid == @first # the first process has ended meanwhile
      end

      def await(cradle)
        heir = cradle.read
        raise Stillborn, "the new process ended before it had taken over" if heir.empty?

        heir.to_i
      ensure
        cradle.close
      end

      # Whatever happens, this process runs no tests while its heir is alive.
      def stand_by(heir)
        Process.pid == @first ? Sys.guard_line(@guard, heir) : Sys.witness_line(@others)
      rescue SystemCallError => e
        warn "pando: #{e.message}"
        exit!(1)
      end
    end
  end
end
