# frozen_string_literal: true

require "pando/events"
require "pando/swarm/checked_runner"
require "pando/swarm/node"
require "pando/swarm/pulse"
require "pando/swarm/stacks"
require "pando/sys"

module Pando
  module Swarm
    # What a job node does, as Cluster::Worker wants it: a runner's threads do the jobs, and the main thread looks now
    # and then how far they are, and brings them to rest when the process is to be forked or to end.
    #
    # Made in the mold, started in each node; everything here runs on its main thread.
    #
    # @api private
    class Work
      # Seconds between two looks whether the last jobs have ended.
      LOOK = 0.02

      # @param kind [Kind]
      # @param make [#call] makes a runner, of a Node
      # @param grace [Float] seconds from the word that jobs stand still to the node's end
      def initialize(kind, make, grace)
        @kind = kind
        @make = make
        @grace = grace
      end

      # In the new node, before it reports ready.
      # @param worker [Cluster::Worker]
      def start(worker)
        @worker = worker
        @node = Node.new(@kind, worker.slot)
        set_traps
        begin_runner
      end

      # @return [Array] nothing to watch: jobs come to the runner
      def sources = []

      def ready(_source); end
      def step_forward; end
      def step_back; end
      def serve_out(_listener, _deadline); end
      def resume; end

      # A node has no job of its own that it could try itself out with.
      # @return [String]
      def try_out = ""

      # At each tick of the worker's loop.
      def idle
        quiet if @told_to_rest
        return unless @runner

        @pulse.take
        begin_anew if @anew && !@runner.busy?
        complain
      end

      # Nothing new is taken from now on. For good, unless it is forked: who is told so is about to end.
      # @return [nil]
      def quiet
        @told_to_rest = true
        quieten
      end

      # Whether nothing of the runner is left, so that the process can be forked. Asked again and again until then.
      # @return [Boolean]
      def rest?
        return true unless @runner

        quieten
        @pulse.take
        return false if @runner.busy?

        end_runner
        true
      end

      # @return [Float] seconds that jobs are given to end before a fork
      def patience = @kind.quiet_timeout

      # It has been forked, or will not be: as before. A runner that has been told to take nothing new ends its jobs
      # first, however long they take: they are not to suffer for a fork that has not come about.
      def go_on
        return begin_anew unless @runner

        @anew = @quiet
      end

      # Running jobs end, or are given back to whom they came from.
      # @param _drain_until [Float, nil] for those whom requests reach
      # @param by [Float, nil] when we must be gone, nearly; nil: in our own time
      def stop(_drain_until = nil, by = nil)
        return unless @runner

        by ||= Sys.now + patience
        quieten
        wait while @runner.busy? && Sys.now < by
        end_runner
      end

      private

      # Who is to take nothing new needs none.
      def begin_runner
        return if @told_to_rest

        @runner = CheckedRunner.new(@make.call(@node), @kind)
        @quiet = @anew = false
        @pulse = Pulse.new(@worker, @runner, @kind.timeout, @grace)
        @runner.start
        @runner.verify
      end

      def begin_anew
        end_runner if @runner
        begin_runner
      rescue StandardError => e
        @worker.leave("its runner did not start again: #{e.message} (#{e.class})")
      end

      def quieten
        @runner&.quiet unless @quiet
        @quiet = true
        nil
      end

      def end_runner
        @runner.stop
        @pulse.finish
        @runner = nil
      end

      def wait
        sleep(LOOK)
        @worker.row.beat
        @pulse.take
      end

      # A runner that cannot go on is replaced with its node.
      def complain
        reason = @runner.trouble
        @worker.leave(reason) if reason
      end

      # Why somebody wants to know where it stands. In the handler.
      def plight
        @runner&.silence || (@pulse&.working? ? "its jobs make no progress" : "it does not go on")
      end

      # The handlers do what may be done in one, or only take a note.
      def set_traps
        trap("TTIN") { Stacks.write }
        trap("URG") { Stacks.write(plight) }
        trap("TSTP") { @told_to_rest = true }
      end
    end
  end
end
