# frozen_string_literal: true

module Pando
  module Cluster
    class Generations
      # Waits for the worker that was told to fork the next mold. It forks between two requests; if it ends before, is
      # replaced, or stays at one request while another one is free, that one is asked. Owned by Generations.
      class Promotion
        # Seconds to wait for a worker at a long request while another one is free, and for the jobs of a node if there
        # is no mold and a process is needed.
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
          @spawner.mold_from(worker, number, (PATIENCE if @options.jobs && @generations.released? && purpose == :heal))
        end

        # A process is needed, and there is no mold. Then a refork waits no longer for the jobs of its node.
        # @return [Boolean] whether it was called off
        def give_way
          return false unless @options.jobs && @generations.upcoming&.successor? && awaited&.row&.busy_since
          return false if Sys.now - @since < PATIENCE

          @spawner.cancel(@generations.upcoming.mold)
          call_off("had jobs for #{PATIENCE.to_i} s, and another process is needed")
          true
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

        # A worker that was to fork a mold refused, or failed. A node refuses if its jobs have not ended in time.
        def refused(mold, reason)
          mold.source.tie_up if @options.jobs && mold.source.row.busy_since
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
          return call_off(reason) unless worker

          @generations.lost_threads.forget_trial
          Events.emit("source.changed", generation: generation.number, source: worker.pid, slot: worker.slot,
                                        requests: worker.requests, reason: "the worker in slot #{slot} #{reason}")
          self.begin(worker, @asked)
          generation.fork_from(worker, order(worker, generation.number, generation.purpose))
          @generations.mold_refused unless generation.mold
        end

        # @param fault [String] of the worker, without its subject
        def call_off(fault)
          generation = @generations.upcoming
          reason = "the worker that was to become the mold (slot #{generation.source.slot}) #{fault}"
          return @generations.withdraw(generation, reason) if generation.heal?

          @reforks.called_off(reason, generation.source)
          @generations.refuse(reason)
        end

        # Its request may have ended just now.
        def delay(source)
          job = source.job
          job.empty? ? "was at a long request" : "was at #{job[:request]} for #{job[:seconds].round} s"
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
