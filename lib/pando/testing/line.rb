# frozen_string_literal: true

require "socket"
require "pando/sys"
require "pando/fork_safety"
require "pando/testing/errors"
require "pando/testing/knowledge"

module Pando
  module Testing
    # The processes that a suite's run passes through, one after another. Never more than three of them exist:
    #
    #   first     the one that was started, and whose end others wait for. It guards the line, and does nothing else.
    #   witness   the last that has reforked. It waits, and takes over should its heir crash.
    #   living    runs the tests, and in the end is the one that reports and exits.
    #
    # All but the first are its children, as workers are the monitor's. What the tests have found so far needs no
    # transport: the heir has its ancestor's memory. Those who wait hold the interpreter's lock, so no thread of theirs
    # goes on.
    #
    # @api private
    class Line
      ADOPTED_WITHIN = 10 # seconds
      private_constant :ADOPTED_WITHIN

      # @return [Array<IO>] what must stay open whatever the app closes
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
      # @return [nil, Integer] nil in the heir. In the forker, which returns only if its heir crashed: of what signal
      # @raise [Stillborn] in the forker: the heir never came to live
      # @raise [SystemCallError] in the forker: the fork failed
      def go_on
        cradle, cry = IO.pipe
        unless fork_off
          be_born(cradle, cry)
          return
        end
        cry.close
        stand_by(await(cradle))
      end

      # Forks a child that is none of the line's generations, and ends when the first does.
      #
      # @yield in the child, which exits when the block returns
      # @return [nil]
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

      def first? = Process.pid == @first

      # @return [Boolean] true in the forker
      def fork_off
        Sys.probe_fork
        Knowledge.around_fork { Sys.fork_sibling }
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
        exit!(1) unless Sys.parent_pid == @first # it ended in between
      end

      def await(cradle)
        heir = cradle.read
        raise Stillborn, "the new process ended before it had taken over" if heir.empty?

        heir.to_i
      ensure
        cradle.close
      end

      # Whatever happens, this process does not go on beside a heir that lives.
      def stand_by(heir)
        first? ? Sys.guard_line(@guard, heir) : Sys.witness_line(@others)
      rescue SystemCallError => e
        warn "pando: #{e.message}"
        exit!(1)
      end
    end
  end
end
