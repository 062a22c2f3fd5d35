# frozen_string_literal: true

require "pando/version"

module Pando
  module Cluster
    class Control
      # The cluster at this moment, as records: one of the server, one of each generation, listener and
      # process. What can be read from outside (memory, from /proc) is left to who asks.
      #
      # @api private
      class Snapshot
        ROLES = %i[reactor mold worker service].freeze

        def initialize(cluster)
          @cluster = cluster
        end

        # @yieldparam word [String] @yieldparam pairs [Hash{Symbol => Object}]
        def each(&block)
          yield "server", server
          @cluster.listeners.waiting.each { |listen, waiting| yield "listener", listen: listen, waiting: waiting }
          queue = @cluster.reactors.state
          yield "queue", queue if queue
          generations.each { |generation| yield "generation", facts(generation) }
          policy = @cluster.generations.explain
          yield "refork", policy if policy.any?
          troubles.each(&block)
          processes.each(&block)
        end

        private

        def server
          { pid: Process.pid, version: Pando::VERSION, workers: @cluster.rollout.size,
            ready: @cluster.roster.ready_workers.size, state: state, uptime: @cluster.age.round(1),
            reforks: @cluster.generations.reforks, sizing: @cluster.sizing.explain, **reforking }
        end

        def reforking
          suspension = @cluster.generations.suspension
          { failures: suspension.failures, suspended: (true if suspension.suspended?),
            reloading: (true if @cluster.reload.under_way?) }
        end

        def state
          return "stopping" if @cluster.shutdown.begun?

          return "draining" if @cluster.drain.begun?

          @cluster.roster.ready_workers.any? ? "serving" : "booting"
        end

        def processes
          @cluster.roster.sort_by { |child| order(child) }.map { |child| [child.role, process(child)] }
        end

        # Who dies too often, and what has gone wrong since the start.
        def troubles
          dampers = [*@cluster.dampers.states, *generations.map(&:backoff).reject(&:calm?).map(&:state)]
          [*dampers.map { |state| ["damper", state] }, *([["counts", counts]] if counts.any?)]
        end

        def counts = @cluster.tally.counts.to_h { |name, number| [name.tr(".", "_").to_sym, number] }

        def generations
          all = @cluster.generations
          [(all.proved unless all.proved.equal?(all.current)), all.current, all.upcoming].compact
        end

        def facts(generation)
          { number: generation.number, state: generation.state, purpose: generation.purpose,
            mold: generation.mold&.pid, age: generation.age, **proof(generation) }
        end

        # How far the canary is, or the watch over all after the rollout.
        def proof(generation)
          all = @cluster.generations
          return { proof: progress } if all.proving? && generation.equal?(all.upcoming)

          all.watching? && generation.equal?(all.current) ? { watch: progress } : {}
        end

        def progress
          @cluster.generations.progress.then { |so_far| "#{so_far[:requests]} requests in #{so_far[:seconds].round} s" }
        end

        def order(child) = [ROLES.index(child.role), child.slot, child.generation, child.seat]

        def process(child)
          row = child.row
          job = child.pidfd ? child.job : {}
          { slot: (child.slot if child.worker?), name: (@cluster.services.name(child) if child.service?),
            generation: (child.generation unless child.reactor?), pid: child.pid, state: doing(child, job),
            requests: (row.requests if child.worker?), seconds: job[:seconds], job: job[:request],
            unsafe: (true if child.worker? && !child.fork_safe?), **(child.worker? ? warmth(child) : {}) }
        end

        # What has become of it, as it was last sampled.
        def warmth(worker)
          sample = worker.sample
          { trainee: (true if worker.equal?(@cluster.generations.training.trainee)),
            code: sample&.code_bytes, kinds: sample&.kinds, faults: sample&.faults_per_job&.round(2) }
        end

        def doing(child, job)
          return child.state unless child.worker? && child.ready?

          job.empty? ? "idle" : "busy"
        end
      end
    end
  end
end
