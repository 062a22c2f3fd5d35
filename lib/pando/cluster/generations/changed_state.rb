# frozen_string_literal: true

require "pando/cluster/brief"
require "pando/cluster/message"
require "pando/events"

module Pando
  module Cluster
    class Generations
      # Workers that must not be forked, for a request has changed what the kernel keeps of their process. They serve
      # on, and another one is asked; if none is left, they are replaced, so that there is one to ask.
      #
      # Some changes are no single request's doing: libraries set a variable of the environment, say, when they are
      # first used. The first worker that is found with such a change is as suspect as any, but all others are told of
      # it, and whoever has made the same change by itself may hand it down. What has changed, and the words about it,
      # come from the workers; here it is a token.
      #
      # Owned by Generations, in the monitor.
      #
      # @api private
      class ChangedState
        include Brief

        ACTIONS = ["refused", "put back"].freeze
        SEVERITIES = { "error" => :error, "warning" => :warning }.freeze
        TOKEN = /\A\h{1,16}\z/
        # Tokens that are remembered, and changes.
        LIMIT = 500
        TOLD = 100
        REASON = "requests have changed its process, and no refork is possible from it"
        # Seconds from one replacement to the next: twice as long each time, up to a limit. An application that changes
        # the state of each worker is not to lose them all, again and again.
        FIRST = 10.0
        LONGEST = 3600.0

        # @param generations [#upcoming]
        def initialize(roster, generations)
          @roster = roster
          @generations = generations
          @tokens = []
          @told = []
          calm_down
        end

        # A worker that was asked to fork has found a change.
        # @param text [String] what is done about it, its token, its severity, its name, and the words, in lines
        def report(worker, text)
          action, token, severity, subject, reason, advice = text.split("\n", 6)
          return if advice.nil?

          action = nil unless ACTIONS.include?(action)
          severity = SEVERITIES.fetch(severity, :error)
          Events.emit("finding.reported", kind: :changed_state, severity: severity, subject: subject, reason: reason,
                                          advice: advice, action: action, role: worker.role, **worker.identity,
                                          **remember(reason))
          @tokens |= [token] if action == "refused" && token.match?(TOKEN) && @tokens.size < LIMIT
        end

        # @param worker [Child] @param reason [String] in its words
        def declined(worker, reason)
          worker.declined = reason
          tell # before another one is asked
        end

        # @param words [String] why there is no refork
        # @return [Boolean] an event has told of that change
        def told?(words) = @told.any? { |reason| words.include?(reason) }

        # Called at each turn of the monitor's loop.
        def reconcile(now = Sys.now)
          tell
          replace(now) if @generations.upcoming.nil? && now >= @due
        end

        # When reconcile has something to do again, nil: at the next event.
        def due = (@due if @due > Sys.now && replaceable)

        # @return [String, nil] about a worker that may not be promoted
        def refusal = declined_workers.first&.declined

        # For `pando status`.
        # @return [Array<Hash{Symbol => Object}>]
        def explain = declined_workers.map { |worker| { **worker.identity, reason: worker.declined } }

        # @param generation [Generation] that serves in all slots; another release may do other things
        def established(generation)
          calm_down
          @told = []
          @tokens = [] if %i[boot reload].include?(generation.purpose)
        end

        private

        # Each worker may have made the same change, and each reports it.
        # @return [Hash{Symbol => Boolean}] for the event
        def remember(reason)
          return { told: true } if @told.include?(reason)

          @told = [*@told.last(TOLD - 1), reason] unless reason.empty?
          {}
        end

        def declined_workers = @roster.ready_workers.select(&:declined)
        def replaceable = declined_workers.find { |worker| !worker.replacement_wanted? }

        # Who has declined is not asked again: that one change is not to pass for two.
        def tell
          return if @tokens.empty?

          @roster.ready_workers.each do |worker|
            next if worker.changes_told == @tokens.size || worker.declined

            @tokens.drop(worker.changes_told).each { |one| worker.order(Message.new(:state_seen, text: one)) }
            worker.changes_told = @tokens.size
          end
        end

        def replace(now)
          worker = replaceable or return
          worker.replacement_reason = REASON
          @due = now + @spacing
          @spacing = [@spacing * 2, LONGEST].min
        end

        def calm_down
          @due = 0.0
          @spacing = FIRST
        end
      end
    end
  end
end
