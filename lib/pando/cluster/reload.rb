# frozen_string_literal: true

require "pando/cluster/brief"
require "pando/cluster/serializable"
require "pando/events"

module Pando
  module Cluster
    # Another release of the application, without losing a request: the configuration is read anew, in a process
    # of its own; what it wants to listen on is opened; a fresh mold boots from cold beside the old one, and when
    # its first worker has proved itself the others are replaced. Whatever fails on the way, the old release serves on
    # and keeps its settings. While the new release is watched it serves already, but may still be taken back: its
    # settings and services are taken up when the watch is over.
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
      # Seconds after which whoever asks again does not wait for the one who reads the configuration: it may hang.
      PATIENCE = 2.0

      # @param payload [Payload] that can renew itself
      # @param addresses [Listening::Addresses] where we listen
      # @param adopt [#call] takes the renewal into use once its generation serves
      def initialize(generations, payload, poller, addresses, adopt)
        @generations = generations
        @payload = payload
        @poller = poller
        @addresses = addresses
        @adopt = adopt
      end

      # Another one that is asked for while one is under way follows it: the release may have changed again. If the
      # configuration is still being read, after quite a while, it takes its place.
      # @param reason [String]
      # @param now [Boolean] the new release's first worker need not prove itself
      def request(reason, now: false)
        failed("another one was asked for (#{reason})") if reading? && Sys.now - @began_at > PATIENCE
        @wanted = reason
        @now = now
      end

      # Nothing has come of it but that the configuration is, or has been, read.
      # @param reason [String]
      # @return [Boolean] false: there is none, or its generation is on its way
      def cancel(reason)
        return false if @generation || (@renewal.nil? && @wanted.nil?)

        failed(reason)
        @wanted = nil
        true
      end

      # @return [Boolean] whether what it has begun would be lost
      def under_way? = !@renewal.nil?

      # @return [Boolean] it begins once there is a mold to fall back to
      def awaits_mold? = !!@known && @generation.nil?

      # What a reload must wait for before it can go on.
      # @return [Array(String, Float), nil] in words, and seconds that this takes at most (nil: not known)
      def obstacle
        return ["the reload before it: it reads the configuration", nil] if @wanted && reading?

        reason, seconds = @generations.occupation if (@wanted && @renewal) || awaits_mold?
        return unless reason

        ["#{"the reload before it: " if @wanted}#{reason}", seconds]
      end

      # Hears the process that reads the configuration, whatever else is to be done.
      def attend
        @known = attempt { @renewal.ready? } if @renewal && !@known
      end

      # Called at each turn of the monitor's loop.
      def reconcile
        conclude if @generation
        start if @wanted && @renewal.nil?
        boot if @known && @generation.nil? && @generations.rooted?
      end

      # @return [Float, nil] when it must look again
      def due = (@renewal.due if @renewal && !@known)

      # The server ends.
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

      # While it is watched it may still be taken back, and so the old settings stay.
      def conclude
        case @generation.state
        when :current then serve
        when :retired then @serves ? finished : failed(LOST)
        when :discarded, :refused then failed(@generation.reason || LOST)
        end
      end

      # Somebody who wants the next release does not wait for what this one will have shown.
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
    end
  end
end
