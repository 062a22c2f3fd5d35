# frozen_string_literal: true

require "pando/events"

module Pando
  module Cluster
    # Another release of the application, without losing a request: the configuration is read anew, a
    # fresh mold boots from cold beside the old one, and when its first worker has come up the others are
    # replaced. Whatever fails on the way, the old release serves on and keeps its settings.
    #
    # Owned by the monitor.
    #
    # @api private
    class Reload
      LOST = "its mold is lost"

      # @param payload [Payload] that can renew itself
      # @param adopt [#call] takes the renewal into use once its generation serves
      def initialize(generations, payload, adopt)
        @generations = generations
        @payload = payload
        @adopt = adopt
      end

      # Another one that is asked for while one is under way follows it: the release may have changed again.
      # @param reason [String]
      def request(reason)
        @wanted = reason
      end

      # Called at each turn of the monitor's loop.
      def reconcile
        conclude if @generation
        start if @wanted && @generation.nil? && @generations.upcoming.nil?
      end

      private

      def start
        reason = @wanted
        @wanted = nil
        @began_at = Sys.now
        Events.emit("reload.started", reason: reason)
        @renewal = @payload.renew
        @generation = @generations.reload(@renewal.command)
      rescue Pando::Error, SystemCallError, LoadError => e
        failed(e.message)
      end

      # While it is watched it may still be taken back, and so the old settings stay.
      def conclude
        case @generation.state
        when :current
          @serves = true
          finished unless @generations.watching?
        when :retired then @serves ? finished : failed(LOST)
        when :discarded then failed(@generation.reason || LOST)
        end
      end

      def finished
        kept = @renewal.kept
        @adopt.call(@renewal)
        Events.emit("reload.incomplete", settings: kept.join(", ")) if kept.any?
        Events.emit("reload.finished", generation: @generation.number, seconds: (Sys.now - @began_at).round(3))
        @generation = @renewal = @serves = nil
      end

      def failed(reason)
        @renewal&.give_up
        Events.emit("reload.failed", reason: reason, generation: @generation&.number)
        @generation = @renewal = @serves = nil
      end
    end
  end
end
