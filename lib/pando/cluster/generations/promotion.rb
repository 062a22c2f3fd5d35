# frozen_string_literal: true

module Pando
  module Cluster
    class Generations
      # Waits for the worker that was told to fork the next mold. It forks between two requests; if it ends before, is
      # replaced, or stays at one request while another one is free, that one is asked. Owned by Generations.
      class Promotion
        # Seconds to wait for a worker at a long request while another one is free, and for the jobs of a node while
        # a process is needed. The node does no new jobs meanwhile.
        PATIENCE = 5.0
        # The most workers that are asked for one mold.
        MOST = 4
        # The reasons that a worker and the monitor give when a worker leaves after a timeout.
        TIMEOUTS = ["timeout", "hard timeout"].freeze
        private_constant :TIMEOUTS

        # @param options [#jobs] a node is always at jobs, and ends its wait by itself
        def initialize(generations, reforks, spawner, options)
          @generations = generations
          @reforks = reforks
          @spawner = spawner
          @options = options
        end

        # Orders a worker to fork the next mold.
        # @return [Child, nil] the mold; nil: the kernel refused
        def order(worker, number, purpose)
          @spawner.mold_from(worker, number, (PATIENCE if @options.jobs && purpose == :heal))
        end

        # A worker has been asked.
        # @param before [Array<Child>] those that were asked for this mold before
        def begin(worker, before = [])
          @asked = [*before, worker]
          @replacement_reason = worker.replacement_reason
          @request = nil
          @since = Sys.now
        end

        def reconcile
          return unless (source = awaited)
          return move(fate(source), anybody: true) unless here?(source)

          @request = source.job[:request] || @request
          return if @options.jobs || !source.engaged? || Sys.now - @since < PATIENCE

          move(delay(source)) if substitute
        end

        # The time for the fork is over.
        # @return [Boolean] true: the worker is still at one request, and not to blame
        def overdue(mold)
          source = awaited
          return false unless source&.engaged? && mold.equal?(@generations.upcoming.mold)

          source.tie_up
          move(delay(source))
          true
        end

        # A worker that was to fork a mold refused, or failed.
        def refused(mold, reason)
          @reforks.refused_by(mold.source, reason, refork: @generations.upcoming&.purpose == :refork)
        end

        # The worker that was asked must not be forked.
        # @return [Boolean] false: that mold is not wanted any more
        def declined(mold, reason)
          return false unless mold.source.worker?

          @generations.changed_state.declined(mold.source, reason)
          return false unless awaited && mold.equal?(@generations.upcoming.mold)

          move("must not be forked: #{reason}", anybody: true)
          true
        end

        private

        # The worker that has not forked yet.
        def awaited
          mold = @generations.upcoming&.mold
          mold.source if mold&.ordered? && mold.source&.worker?
        end

        def here?(source) = source.ready? && !source.condemned? && source.replacement_reason == @replacement_reason

        def substitute(**how)
          @reforks.substitute(@generations.upcoming, @asked, **how) if @asked.size < MOST
        end

        # Another worker is to fork the mold. If there is none, that is not a failure.
        # @param reason [String] without its subject
        def move(reason, **how)
          generation = @generations.upcoming
          slot = generation.source.slot
          worker = substitute(**how)
          @spawner.cancel(generation.mold)
          return call_off("the worker that was to become the mold (slot #{slot}) #{reason}") unless worker

          @generations.lost_threads.forget_trial
          Events.emit("source.changed", generation: generation.number, source: worker.pid, slot: worker.slot,
                                        requests: worker.requests, reason: "the worker in slot #{slot} #{reason}")
          self.begin(worker, @asked)
          generation.fork_from(worker, order(worker, generation.number, generation.purpose))
          @generations.mold_refused unless generation.mold
        end

        def call_off(reason)
          generation = @generations.upcoming
          return @generations.withdraw(generation, reason) if generation.heal?

          @reforks.called_off(reason, generation.source)
          @generations.refuse(reason)
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
