# frozen_string_literal: true

require "pando/events"
require "pando/swarm/checked_runner"
require "pando/swarm/node"
require "pando/swarm/pulse"
require "pando/swarm/stacks"
require "pando/sys"

module Pando
  module Swarm
    # The work of a job node, in the form that Cluster::Worker expects. A runner's threads run the jobs. The main thread
    # checks their progress now and then, and brings them to rest before a fork or the end of the process.
    #
    # Made in the mold, started in each node. Everything here runs on the node's main thread.
    #
    # @api private
    class Work
      # Seconds between two checks whether the last jobs have ended.
      LOOK = 0.02

      # @param kind [Kind]
      # @param make [#call] makes a runner for a Node
      # @param grace [Float] seconds from the report that jobs make no progress to the node's end
      def initialize(kind, make, grace)
        @kind = kind
        @make = make
        @grace = grace
      end

      # Runs in the new node, before it reports ready.
      # @param worker [Cluster::Worker]
      def start(worker)
        @worker = worker
        @node = Node.new(@kind, worker.slot)
        set_traps
        begin_runner
      end

      # @return [Array] nothing to watch: the runner fetches its jobs itself
      def sources = []

      def ready(_source); end
      def step_forward; end
      def step_back; end
      def serve_out(_listener, _deadline); end
      def resume; end

      # A node has no job with which it could test itself.
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

      # The node takes no new jobs from now on. Unless it is forked, this is final: the node is about to end.
      # @return [nil]
      def quiet
        @told_to_rest = true
        quieten
      end

      # Whether the runner is completely gone, so that the process can be forked. The worker asks again and again until
      # then.
      # @return [Boolean]
      def rest?
        return true unless @runner

        quieten
        @pulse.take
        return false if @runner.busy?

        end_runner
        true
      end

      # @return [Float] seconds that jobs get to finish before a fork
      def patience = @kind.quiet_timeout

      # The process has been forked, or will not be: it goes on as before. A runner that was told to be quiet lets its
      # jobs finish first, however long they take. They must not suffer from a fork that did not happen.
      def go_on
        return begin_anew unless @runner

        @anew = @quiet
      end

      # Running jobs finish, or go back to the broker.
      # @param _drain_until [Float, nil] for workers that serve requests; not used here
      # @param by [Float, nil] when the node should be gone; nil: no hurry
      def stop(_drain_until = nil, by = nil)
        return unless @runner

        by ||= Sys.now + patience
        quieten
        wait while @runner.busy? && Sys.now < by
        end_runner
      end

      private

      # A node that was told to take no new jobs needs no runner.
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
        @worker.leave("its runner failed to restart: #{e.message} (#{e.class})")
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

      # Replaces the node if its runner cannot go on.
      def complain
        reason = @runner.trouble
        @worker.leave(reason) if reason
      end

      # Why the monitor asks for stack traces. Runs in a signal handler.
      def plight
        @runner&.silence || (@pulse&.working? ? "its jobs make no progress" : "its main thread hangs")
      end

      # The handlers do only what is allowed in one, or set a flag.
      def set_traps
        trap("TTIN") { Stacks.write }
        trap("URG") { Stacks.write(plight) }
        trap("TSTP") { @told_to_rest = true }
      end
    end
  end
end
