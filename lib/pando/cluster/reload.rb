# frozen_string_literal: true

require "pando/cluster/brief"
require "pando/cluster/serializable"
require "pando/events"

module Pando
  module Cluster
    # Replaces the application by a new release without losing a request. A process of its own reads the configuration,
    # and the monitor opens new listeners. A fresh mold boots from cold beside the old one. When its canary has passed,
    # the other workers are replaced. If any step fails, the old release serves on with its settings. While the new
    # release is watched, it serves but may still be rolled back; its settings and services apply when the watch is
    # over.
    #
    # Owned by the monitor.
    #
    # @api private
    class Reload
      include Brief
      extend Serializable

      serialize_as "reload", wanted: :text, now: :flag

      ADVICE = "the old release serves on; pando reload tries again"
      LOST = "its mold is lost"
      # Seconds after which a new request replaces a process that still reads the configuration: it may hang.
      PATIENCE = 2.0

      # @param payload [Payload] with #renew
      # @param addresses [Addresses] where the server listens
      # @param adopt [#call] applies the renewal once its generation serves
      def initialize(generations, payload, poller, addresses, adopt)
        @generations = generations
        @payload = payload
        @poller = poller
        @addresses = addresses
        @adopt = adopt
      end

      # A reload that is requested during another one follows it, since the release may have changed again. If the other
      # one has been reading the configuration for long, the new one replaces it.
      # @param reason [String]
      # @param now [Boolean] the new release needs no canary
      def request(reason, now: false)
        failed("another one was asked for (#{reason})") if reading? && Sys.now - @began_at > PATIENCE
        @wanted = reason
        @now = now
      end

      # Cancels a reload that has done no more than read the configuration.
      # @param reason [String]
      # @return [Boolean] false: there is no reload, or its generation has begun
      def cancel(reason)
        return false if @generation || (@renewal.nil? && @wanted.nil?)

        failed(reason)
        @wanted = nil
        true
      end

      # @return [Boolean] whether a reload has begun
      def under_way? = !@renewal.nil?

      # @return [Boolean] whether it waits for a mold to fall back to
      def awaits_mold? = !!@known && @generation.nil?

      # Names what the reload waits for.
      # @return [Array(String, Float), nil] a description, and the most seconds that this takes (nil: not known)
      def obstacle
        return ["the reload before it: it reads the configuration", nil] if @wanted && reading?

        reason, seconds = @generations.occupation if (@wanted && @renewal) || awaits_mold?
        return unless reason

        ["#{"the reload before it: " if @wanted}#{reason}", seconds]
      end

      # Reads the answer of the process that reads the configuration.
      def attend
        @known = attempt { @renewal.ready? } if @renewal && !@known
      end

      # Called at each turn of the monitor's loop.
      def reconcile
        conclude if @generation
        start if @wanted && @renewal.nil?
        boot if @known && @generation.nil? && @generations.rooted?
      end

      # @return [Float, nil] when it needs the next turn
      def due = (@renewal.due if @renewal && !@known)

      # The server stops.
      def abandon
        @renewal&.give_up
        @addresses.give_up
      end

      private

      def reading? = !@renewal.nil? && !@known

      def start
        reason = @wanted
        @untried = (reason if @now)
        @wanted = nil
        @began_at = Sys.now
        Events.emit("reload.started", reason: reason)
        attempt { @renewal = @payload.renew(@poller) }
      end

      def boot
        attempt do
          @addresses.prepare(@renewal)
          @renewal.within { @generation = @generations.reload(@renewal.command, @addresses.upcoming) }
          @generation.untried = @untried
        end
      end

      def attempt
        yield
      rescue Pando::Error, SystemCallError, LoadError => e
        failed(e.message)
        false
      end

      # While the new release is watched it may be rolled back, so the old settings stay.
      def conclude
        case @generation.state
        when :current then serve
        when :retired then @serves ? finished : failed(LOST)
        when :discarded, :refused then failed(@generation.reason || LOST)
        end
      end

      # A request for the next release ends the watch of this one.
      def serve
        @generations.end_watch("another reload was asked for") if @wanted
        return finished unless @generations.watching?

        tell_serving unless @serves
        @serves = true
      end

      def tell_serving
        Events.emit("reload.serving", generation: @generation.number, seconds: (Sys.now - @began_at).round(3),
                                      reason: @generation.unproven, longest: @generations.remaining&.round(1))
      end

      def finished
        kept = @renewal.kept
        @addresses.adopt
        @adopt.call(@renewal)
        Events.emit("reload.incomplete", settings: kept.join(", ")) if kept.any?
        Events.emit("reload.finished", generation: @generation.number, seconds: (Sys.now - @began_at).round(3))
        forget
      end

      def failed(reason)
        @renewal&.give_up
        @addresses.give_up
        Events.emit("reload.failed", reason: reason, generation: @generation&.number, advice: ADVICE)
        forget
      end

      def forget
        @generation = @renewal = @serves = @untried = nil
        @known = false
      end

      # The addresses that a reload may change: the application's listeners and the control socket. New ones are opened
      # before anything changes, and then either used or closed again.
      #
      # Owned by the monitor.
      #
      # @api private
      class Addresses
        # @param reactors [Reactor::Supervisor, Listening::DirectMode] told of changed listeners
        def initialize(listeners, control, reactors)
          @listeners = listeners
          @control = control
          @reactors = reactors
        end

        # @param renewal [#listen, #control]
        # @raise [BootError] the server cannot listen on one of them
        def prepare(renewal)
          @change = @listeners.prepare(renewal.listen)
          @control.prepare(renewal.control)
        end

        # @return [Array<Listener>] that the new release accepts from
        def upcoming = @change.views

        def adopt
          before = @listeners.to_a
          @reactors.listeners_changed(@listeners.adopt(@change))
          @control.adopt
          tell(before)
          @change = nil
        end

        def give_up
          @control.give_up
          @listeners.give_up(@change) if @change
          @change = nil
        end

        private

        def tell(before)
          after = @listeners.to_a
          (after - before).each { |one| Events.emit("listener.opened", **one.identity) }
          (before - after).each { |one| Events.emit("listener.closed", listen: one.name) }
        end
      end
    end
  end
end
