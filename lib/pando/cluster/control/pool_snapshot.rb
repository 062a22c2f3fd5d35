# frozen_string_literal: true

require "pando/counted"

module Pando
  module Cluster
    class Control
      # One pool at this moment, as records for Snapshot.
      #
      # @api private
      class PoolSnapshot
        include Counted

        # @param pool [Pool]
        # @param name [String, nil] nil: it is not spoken of
        def initialize(pool, name)
          @pool = pool
          @name = name
        end

        def reforks = @pool.generations.reforks
        def failures = suspension.failures
        def suspended? = suspension.suspended?
        def sizing = @pool.sizing.explain

        # @return [Array<Array(String, Hash)>] one at most, as the following
        def pool
          return [] unless @name

          [["pool", { name: @name, kind: (@pool.options.jobs ? "node" : "worker"),
                      workers: @pool.rollout.size, ready: @pool.roster.ready_workers.size,
                      reforks: reforks, failures: failures, suspended: (true if suspended?), sizing: sizing }]]
        end

        def generations = known.map { |generation| ["generation", { pool: @name, **facts(generation) }] }

        # How it stands with the policy.
        def policy
          facts = @pool.generations.explain
          facts.any? ? [["refork", { pool: @name, **facts }]] : []
        end

        # What each mold inherits and hands down.
        # @return [Array<Array(String, Hash)>] one at most
        def leak
          facts = @pool.generations.cold_boots.explain
          facts.any? ? [["leak", { pool: @name, **facts }]] : []
        end

        # Threads that forked processes lack.
        def lost_threads
          size = @pool.roster.ready_workers.size
          @pool.generations.lost_threads.explain.map do |one|
            ["lost_thread", { pool: @name, **one, workers: (size if one[:held]) }]
          end
        end

        # Workers that are not promoted, for a request has changed their process.
        def changed_states
          @pool.generations.changed_state.explain.map { |one| ["changed_state", { pool: @name, **one }] }
        end

        # Paths that workers refuse, for they have ended others.
        def refused_paths
          @pool.poison.refused.map do |one|
            ["refused_path", { pool: @name, **one, seconds: one[:seconds].round(1) }]
          end
        end

        # Who dies too often.
        def throttles
          states = [*@pool.throttles.states, *known.map(&:backoff).reject(&:calm?).map(&:state)]
          states.map { |state| ["throttle", { pool: @name, **state }] }
        end

        # @param child [Child] of this pool
        # @return [Hash{Symbol => Object}]
        def process(child)
          return worker(child) if child.worker?

          { pool: (@name unless child.reactor?), name: (@pool.services.name(child) if child.service?),
            generation: (child.generation unless child.reactor?), pid: child.pid, state: child.state }
        end

        private

        def suspension = @pool.generations.suspension

        def known
          all = @pool.generations
          [(all.proved unless all.proved.equal?(all.current)), all.current, all.upcoming].compact
        end

        def facts(generation)
          { number: generation.number, state: generation.state, purpose: generation.purpose,
            mold: generation.mold&.pid, age: generation.age,
            released: (true if generation.released?), **proof(generation) }
        end

        # How far the canary is, or the watch over all after the rollout.
        def proof(generation)
          all = @pool.generations
          return { proof: progress, waits: waits(all) } if all.on_trial? && generation.equal?(all.upcoming)

          all.watching? && generation.equal?(all.current) ? { watch: progress, unproven: generation.unproven } : {}
        end

        def waits(all)
          question = all.lost_threads.question
          "#{question}, for #{all.remaining.ceil} s at most" if question
        end

        def progress
          requests, seconds = @pool.generations.progress.values_at(:requests, :seconds)
          "#{counted(requests, @pool.options.jobs ? "job" : "request")} in #{seconds.round} s"
        end

        def worker(child)
          job = child.pidfd ? child.job : {}
          { pool: @name, slot: child.slot, generation: child.generation, pid: child.pid, state: doing(child, job),
            requests: child.requests, connections: (child.connections if child.connections.positive?),
            seconds: job[:seconds], job: job[:request],
            unsafe: (true unless child.fork_safe?), major_gc_due: (true if child.major_gc_due?), **warmth(child),
            **(@pool.options.jobs ? load(child.row) : {}) }
        end

        # What a node is at.
        def load(row) = { running: row.running, failed: row.failures, lag: row.lag }

        # What has become of it, as it was last sampled.
        def warmth(worker)
          sample = worker.sample
          { trainee: (true if worker.equal?(@pool.generations.training.trainee)),
            code: sample&.code_bytes, full: sample&.major_gcs, kinds: sample&.kinds,
            faults: sample&.faults_per_job&.round(2) }
        end

        def doing(child, job)
          return child.state unless child.ready?

          job.empty? ? "idle" : "busy"
        end
      end
    end
  end
end
