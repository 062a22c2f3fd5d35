# frozen_string_literal: true

require "pando/counted"
require "pando/events"

module Pando
  module Cluster
    class Generations
      # The worker that has been told to fork the next mold, until it has. It forks between two requests; if it ends
      # before, is replaced, or stays at one request while another worker is free, that one is asked in its place.
      #
      # Owned by Generations, in the monitor.
      #
      # @api private
      class Promotion
        # Seconds that a worker is waited for which is at a long request, while another one is free.
        PATIENCE = 5.0
        # Workers that are asked for one mold, at most.
        MOST = 4
        # What a worker says when it leaves because of a request that took too long, and what the monitor does.
        TIMEOUTS = ["timeout", "hard timeout"].freeze
        private_constant :TIMEOUTS

        # @param generations [#upcoming, #call_off, #ask]
        # @param reforks [#substitute]
        # @param options [#jobs] a node is at jobs all the time, and ends its wait by itself
        def initialize(generations, reforks, options)
          @generations = generations
          @reforks = reforks
          @options = options
          @asked = []
        end

        # A worker has been asked.
        # @param first [Boolean] of its generation
        def begin(worker, first: true)
          @asked = [] if first
          @asked += [worker]
          @replacement_reason = worker.replacement_reason
          @request = nil
          @since = Sys.now
        end

        # Called at each turn of the monitor's loop.
        def reconcile
          return unless (source = asked)
          return move(fate(source), anybody: true) unless here?(source)

          @request = source.job[:request] || @request
          return if @options.jobs || !source.engaged? || Sys.now - @since < PATIENCE || @asked.size >= MOST

          move(delay(source)) if substitute
        end

        # It has had all the time that there is, and is still at one request.
        # @param mold [Child] that was to be forked
        # @return [Boolean] false: it is not to blame
        def overdue(mold)
          source = asked
          return false unless source&.engaged? && mold.equal?(@generations.upcoming.mold)

          source.tie_up
          move(delay(source))
          true
        end

        # The worker that was asked must not be forked.
        # @param mold [Child] that was to be forked
        # @param reason [String] in its words
        # @return [Boolean] false: that mold is not wanted any more
        def declined(mold, reason)
          return false unless asked && mold.equal?(@generations.upcoming.mold)

          move("must not be forked: #{reason}", anybody: true)
          true
        end

        private

        # @return [Child, nil] the worker that has not forked yet
        def asked
          mold = @generations.upcoming&.mold
          mold.source if mold&.ordered? && mold.source&.worker?
        end

        def here?(source) = source.ready? && !source.condemned? && source.replacement_reason == @replacement_reason

        def substitute(**how)
          @reforks.substitute(@generations.upcoming, @asked, **how) if @asked.size < MOST
        end

        # @param reason [String] without its subject
        def move(reason, **how)
          slot = @generations.upcoming.source.slot
          worker = substitute(**how)
          return @generations.call_off("the worker that was to become the mold (slot #{slot}) #{reason}") unless worker

          self.begin(worker, first: false)
          @generations.ask(worker, "the worker in slot #{slot} #{reason}")
        end

        def delay(source)
          "was at #{source.job[:request]} for #{(Sys.now - source.row.busy_since).round} s"
        end

        def fate(source)
          why = source.replacement_reason || source.reason
          return "was replaced after #{@request || "its request"} timed out" if TIMEOUTS.include?(why)

          "#{source.gone? || source.condemned? ? "ended" : "is being replaced"}: #{why || source.ending}"
        end
      end
    end
  end
end
