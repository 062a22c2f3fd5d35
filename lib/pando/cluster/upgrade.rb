# frozen_string_literal: true

require "pando/cluster/brief"
require "pando/events"
require "pando/cluster/upgrade/process_image"
require "pando/cluster/upgrade/exec"
require "pando/cluster/upgrade/probe"
require "pando/cluster/upgrade/state"

module Pando
  module Cluster
    # Another Pando takes the place of this monitor, in the same process, and everybody else lives on:
    #
    #   waiting -> probing -> settling -> the other image runs
    #         \________ \_________ \_______> this one goes on, and says why
    #
    # It waits until nothing is begun that only this monitor's memory knows of (a generation on its way, a process
    # that starts). Then the other image is tried in a child (Probe), and executed when it has shown that it can
    # read the state of this cluster (Passage).
    #
    # Owned by the monitor.
    #
    # @api private
    class Upgrade
      include Brief

      # Seconds until the cluster must have come to rest, before the probe and after it.
      PATIENCE = 120.0
      # Seconds in which nothing new is begun, so that it comes to rest.
      HOLD = 2.0
      # Seconds between two looks.
      LOOK = 0.02

      # @param cluster [Monitor]
      # @param image [ProcessImage] that it runs
      def initialize(cluster, payload, poller, signals, image)
        @cluster = cluster
        @payload = payload
        @poller = poller
        @image = image
        @passage = Exec.new(cluster, signals, image)
        @phase = :none
      end

      # @param reason [String]
      # @return [nil] an event tells how it ends, now or later; a second wish shares the outcome of the first
      def request(reason)
        return unless @phase == :none

        @began_at = Sys.now
        Events.emit("upgrade.started", from: Pando::VERSION, reason: reason)
        enter(:waiting)
      end

      def under_way? = @phase != :none

      # @return [Array(String, Float), nil] what it waits for, in words, and seconds that it does so at most; nil: for
      #   nothing
      def waiting
        reason = obstacle if %i[waiting settling].include?(@phase)
        [reason, @deadline - Sys.now] if reason
      end

      # @return [Boolean] nothing that takes time is to be begun now
      def holds? = @phase == :settling && Sys.now < @held_until && generations.none?(&:upcoming)

      # @return [Float, nil]
      def due
        return if @phase == :none

        @phase == :probing ? @probe.due : Sys.now + LOOK
      end

      # Called at each turn of the monitor's loop, before dead processes that nobody knows are reaped.
      def hear
        outcome = @probe.proceed if @phase == :probing
        return unless outcome

        @probe = nil
        return fail(outcome.reason, outcome.words) if outcome.reason

        @outcome = outcome
        @held_until = Sys.now + HOLD
        enter(:settling)
      end

      # Called at the end of each turn of the monitor's loop. May not return: then another image runs.
      def proceed(now = Sys.now)
        return if @phase == :none
        return give_up("the server stops") if @cluster.ending?
        return if @phase == :probing

        obstacle = self.obstacle
        return step unless obstacle

        give_up("after #{PATIENCE.round} s still #{obstacle}") if now >= @deadline
      end

      private

      def enter(phase)
        @phase = phase
        @deadline = Sys.now + PATIENCE
      end

      def step = @phase == :waiting ? probe : pass

      # What only this image of the monitor could bring to its end.
      # @return [String, nil]
      def obstacle = unsettled_generation || unfinished_business

      def unsettled_generation = generations.filter_map(&:occupation).first&.first

      def generations = @cluster.pools.map(&:generations)

      def unfinished_business
        return "a reload is under way" if @cluster.reload.under_way?
        return "it is being found out where a process stands" if @cluster.examiner.due
        return "somebody outside has told a process to end" if @cluster.pools.any? { |pool| pool.external_signals.due }
        return "the reactor has not read its orders" unless @cluster.lanes.told?
        return "a listener is being closed" unless @cluster.reactors.told?

        starting = @cluster.roster.find(&:starting?)
        "a #{starting.role} is starting" if starting
      end

      def probe
        state = State.of(@cluster, @image)
        state.to_s
        @probe = Probe.new(state, @poller) { |spawn| @payload.successor(&spawn) }
        enter(:probing)
      rescue StandardError => e
        fail(describe(e))
      end

      def pass
        @passage.go(@outcome.image) do
          Events.emit("monitor.upgrading", from: Pando::VERSION, to: @outcome.version, pid: Process.pid,
                                           seconds: (Sys.now - @began_at).round(3))
        end
      rescue StandardError => e # a fault of ours: the cluster does not end for it
        fail(describe(e))
      end

      def describe(error)
        case error
        when Pando::Error, SystemCallError then error.message
        else "#{error.message} (#{error.class})"
        end
      end

      def give_up(reason)
        @probe&.give_up
        @probe = nil
        fail(reason)
      end

      def fail(reason, words = nil)
        @phase = :none
        Events.emit("upgrade.failed", from: Pando::VERSION, reason: reason,
                                      backtrace: (words unless words.nil? || words.empty?))
      end
    end
  end
end
