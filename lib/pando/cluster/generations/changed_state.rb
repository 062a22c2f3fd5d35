# frozen_string_literal: true

require "pando/cluster/generations/release_facts"

module Pando
  module Cluster
    class Generations
      # Keeps track of workers that must not be forked because a request has changed the kernel's state of their
      # process. They continue to serve, and another worker is asked; if none is left, they are replaced.
      #
      # Some changes come from no single request: libraries set a variable of the environment, say, at their first use.
      # The first worker with such a change counts as changed, but all others are told of it, and a worker that has made
      # the same change by itself may be forked. Workers provide the words about a change, and a token that
      # identifies it. Owned by Generations, in the monitor.
      class ChangedState
        include Brief
        include ReleaseFacts

        ACTIONS = ["refused", "put back"].freeze
        SEVERITIES = { "error" => :error, "warning" => :warning }.freeze
        TOKEN = /\A\h{1,16}\z/
        # The most tokens that are remembered, and the most reasons.
        LIMIT = 500
        TOLD = 100
        REASON = "requests have changed its process, and no refork is possible from it"
        # Seconds from one replacement to the next: twice as long each time, up to a limit, so that an application that
        # changes the state of each worker does not lose them all again and again.
        FIRST = 10.0
        LONGEST = 3600.0
        FACTS = %i[@tokens @told @due @spacing].freeze

        def initialize(roster)
          @roster = roster
          forget
        end

        # A worker that was asked to fork has found a change. Several workers may report the same one.
        # @param text [String] the action, the token, the severity, the name, and the words, in lines
        def report(worker, text)
          action, token, severity, subject, reason, advice = text.split("\n", 6)
          return if advice.nil?

          known = { told: true } if @told.include?(reason)
          @told = [*@told.last(TOLD - 1), reason] unless known || reason.empty?
          Events.emit("finding.reported", kind: :changed_state, severity: SEVERITIES.fetch(severity, :error),
                                          subject: subject, reason: reason, advice: advice,
                                          action: (action if ACTIONS.include?(action)), role: worker.role,
                                          **worker.identity, **known.to_h)
          @tokens |= [token] if action == "refused" && token.match?(TOKEN) && @tokens.size < LIMIT
        end

        def declined(worker, reason)
          worker.declined = reason
          tell # before another one is asked
        end

        # @return [Boolean] whether an event has told of that change
        def told?(words) = @told.any? { |reason| words.include?(reason) }

        # @param idle [Boolean] whether no generation is on its way
        def reconcile(idle, now = Sys.now)
          tell
          return unless idle && now >= @due

          worker = replaceable or return
          worker.replacement_reason = REASON
          @due = now + @spacing
          @spacing = [@spacing * 2, LONGEST].min
        end

        def due = (@due if @due > Sys.now && replaceable)

        # @return [String, nil] about a worker that may not be promoted
        def refusal = declined_workers.first&.declined

        def explain = declined_workers.map { |worker| { **worker.identity, reason: worker.declined } }

        # @param generation [Generation] that serves in all slots; another release may make other changes
        def established(generation)
          super
          begin_anew
        end

        private

        def forget
          @tokens = []
          begin_anew
        end

        def declined_workers = @roster.ready_workers.select(&:declined)
        def replaceable = declined_workers.find { |worker| !worker.replacement_wanted? }

        # Leaves out the workers that have declined: their change would count as a second one of the same kind.
        def tell
          @roster.ready_workers.reject(&:declined).each do |worker|
            @tokens.drop(worker.changes_told).each { |one| worker.order(Message.new(:state_seen, text: one)) }
            worker.changes_told = @tokens.size
          end
        end

        def begin_anew
          @told = []
          @due = 0.0
          @spacing = FIRST
        end
      end
    end
  end
end
