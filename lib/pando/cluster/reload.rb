# frozen_string_literal: true

module Pando
  module Cluster
    # Replaces the release of the application without losing a request. A helper process reads the configuration. Then
    # the new sockets are opened, and a new mold boots from cold beside the old one. When its canary has passed, the
    # other workers are replaced. If anything fails, the old release serves on and keeps its settings. While the new
    # release is watched it serves already, but may still be taken back: its settings and services come into use when
    # the watch is over. Owned by the monitor.
    class Reload
      include Brief
      extend Serializable

      serialize_as "reload", wanted: :text, now: :flag, failed: :flag

      ADVICE = "the old release keeps serving; pando reload tries again"
      LOST = "its mold is lost"
      # Seconds after which a second request replaces the helper process that reads the configuration: it may hang.
      READING_TIMEOUT = 2.0

      # @param adopt [#call] takes the renewal into use once its generation serves
      def initialize(pools, payload, poller, addresses, adopt)
        @pools = pools
        @payload = payload
        @poller = poller
        @addresses = addresses
        @adopt = adopt
      end

      # A reload that is requested while another one is under way follows it: the release may have changed again. If the
      # other one still reads its configuration after READING_TIMEOUT, the new one replaces it.
      # @param now [Boolean] the new release's first worker need not prove itself
      def request(reason, now: false)
        failed("another reload was requested (#{reason})") if reading? && Sys.now - @began_at > READING_TIMEOUT
        @wanted = reason
        @now = now
      end

      # Cancels a reload whose generation has not begun.
      # @return [Boolean] false: there is none, or its generation is on its way
      def cancel(reason)
        return false if @generation || (@renewal.nil? && @wanted.nil?)

        failed(reason)
        @wanted = nil
        true
      end

      # @return [Boolean] whether one is to begin
      def wanted? = !@wanted.nil?

      def under_way? = !@renewal.nil?

      # @return [Boolean] whether its generation begins once there is a mold to fall back to
      def awaits_mold? = !!@known && @generation.nil?

      # @return [Boolean] whether the last one has failed
      def failed? = !!@failed

      # What a reload must wait for before it can go on.
      # @return [Array(String, Float), nil] in words, and seconds that this takes at most (nil: not known)
      def obstacle
        return ["the reload before it: it reads the configuration", nil] if @wanted && reading?

        reason, seconds = @pools.occupation if (@wanted && @renewal) || awaits_mold?
        return unless reason

        ["#{"the reload before it: " if @wanted}#{reason}", seconds]
      end

      # Reads what the helper process has sent.
      def attend
        @known = attempt { @renewal.ready? } if @renewal && !@known
      end

      def reconcile
        conclude if @generation
        start if @wanted && @renewal.nil?
        boot if @known && @generation.nil? && @pools.fallback_ready?
      end

      def due = (@renewal.due if @renewal && !@known)

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
          @renewal.within { @generation = @pools.reload(@renewal.command, @addresses.upcoming) }
          @generation.untried = @untried
        end
      end

      def attempt
        yield
      rescue Pando::Error, SystemCallError, LoadError => e
        failed(e.message)
        false
      end

      # The old settings stay as long as the generation may be taken back.
      def conclude
        case @generation.state
        when :current then serve
        when :retired then @generation.served? ? finished : failed(LOST)
        when :discarded, :refused then failed(@generation.reason || LOST)
        end
      end

      # A request for the next release ends the watch over this one.
      def serve
        @pools.end_watch("another reload was requested") if @wanted
        return finished unless @pools.watching?

        tell_serving unless @told_serving
        @told_serving = true
      end

      def tell_serving
        tell_incomplete
        Events.emit("reload.serving", generation: @generation.number, seconds: (Sys.now - @began_at).round(3),
                                      reason: @generation.unproven, longest: @pools.remaining&.round(1))
      end

      def finished
        @failed = false
        tell_incomplete unless @told_serving
        @addresses.adopt
        @adopt.call(@renewal)
        Events.emit("reload.finished", generation: @generation.number, seconds: (Sys.now - @began_at).round(3))
        forget
      end

      def tell_incomplete
        kept = @renewal.kept
        Events.emit("reload.incomplete", settings: kept.join(", ")) if kept.any?
      end

      def failed(reason)
        @failed = true
        @renewal&.give_up
        @addresses.give_up
        Events.emit("reload.failed", reason: reason, generation: @generation&.number, advice: ADVICE)
        forget
      end

      def forget
        @generation = @renewal = @told_serving = @untried = nil
        @known = false
      end

      # The addresses that a reload may change: the application's listeners, the control socket and those of the admin
      # process. New ones are opened before anything changes, then used or closed again. Owned by the monitor.
      class Addresses
        # @param reactors [Reactor::Supervisor, Listening::DirectMode] told of changed listeners
        def initialize(listeners, control, admin, reactors)
          @listeners = listeners
          @control = control
          @admin = admin
          @reactors = reactors
        end

        def prepare(renewal)
          @change = @listeners.prepare(renewal.listen)
          @control.prepare(renewal.control)
          @admin.prepare(renewal.admin)
        end

        def upcoming = @change.views

        def adopt
          before = @listeners.to_a
          @reactors.listeners_changed(@listeners.adopt(@change))
          @control.adopt
          @admin.adopt
          tell(before)
          @change = nil
        end

        def give_up
          @control.give_up
          @admin.give_up
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
