# frozen_string_literal: true

require "pando/version"

module Pando
  module Cluster
    class Control
      # The state of the cluster, as records: one of the server, and one of each listener, pool (unless it is the only
      # one), generation and process. The client itself reads what it can from outside (memory, from /proc).
      # Made by Commands for one `status`, in the monitor.
      class Snapshot
        ROLES = %i[reactor mold worker service].freeze
        # Methods of PoolSnapshot.
        PARTS = %i[pool generations policy leak lost_threads changed_states refused_paths throttles requests].freeze

        def initialize(cluster)
          @cluster = cluster
          @pools = cluster.pools.map { |pool| PoolSnapshot.new(pool, (pool.name if named?(pool))) }
        end

        # @yieldparam word [String] @yieldparam pairs [Hash{Symbol => Object}]
        def each(&block)
          yield "server", server
          @cluster.listeners.waiting.each { |listen, waiting| yield "listener", listen: listen, waiting: waiting }
          queue = @cluster.reactors.state
          yield "queue", queue if queue
          PARTS.each { |part| @pools.flat_map(&part).each(&block) }
          yield "counts", counts if counts.any?
          processes.each(&block)
          admin = @cluster.admin.state
          yield "admin", admin if admin
        end

        private

        # A server with one pool of HTTP workers has no pool names.
        def named?(pool) = @cluster.pools.several? || pool.options.jobs

        def server
          { pid: Process.pid, version: Pando::VERSION, workers: @cluster.pools.workers,
            ready: @cluster.roster.ready_workers.size, threads: common_threads, state: state,
            uptime: @cluster.age.round(1), reforks: @pools.sum(&:reforks), sizing: @pools.first.sizing,
            failures: @pools.sum(&:failures), suspended: (true if @pools.any?(&:suspended?)),
            reloading: (true if @cluster.reload.under_way?), quiet: (true if @cluster.quiet.begun?) }
        end

        # @return [Integer, nil] of a worker; nil: one, or it is another number in another pool
        def common_threads
          counts = @cluster.pools.select(&:serves?).map { |pool| pool.roster.threads }.uniq
          counts.first if counts.one? && counts.first > 1
        end

        def state
          return "stopping" if @cluster.shutdown.begun?
          return "draining" if @cluster.drain.begun?

          serving? ? "serving" : "booting"
        end

        # Beside a first pool that serves requests, as health says it, the others do not count. Job nodes alone do.
        def serving?
          first = @cluster.pools.first
          first.serves? ? first.serving? : @cluster.roster.ready_workers.any?
        end

        def processes
          children = @cluster.roster.sort_by { |child| order(child) }
          children.map { |child| [child.role, @pools[child.pool].process(child)] }
        end

        # Failures since the start.
        def counts = @cluster.tally.counts.to_h { |name, number| [name.tr(".", "_").to_sym, number] }

        def order(child) = [ROLES.index(child.role), child.pool, child.slot, child.generation, child.seat]
      end

      # The state of one pool, as records for Snapshot: each method of Snapshot::PARTS returns an array of them.
      class PoolSnapshot
        include Wording

        # @param name [String, nil] nil: the records do not name the pool
        def initialize(pool, name)
          @pool = pool
          @name = name
        end

        def reforks = @pool.generations.reforks.count
        def failures = @pool.generations.reforks.failures
        def suspended? = @pool.generations.reforks.suspended?
        def sizing = @pool.sizing.explain

        def pool
          return [] unless @name

          [["pool", { name: @name, kind: (@pool.options.jobs ? "node" : "worker"),
                      workers: @pool.rollout.size, ready: @pool.roster.ready_workers.size,
                      threads: (@pool.roster.threads if @pool.serves? && @pool.roster.threads > 1),
                      queued: (@pool.reactors.waiting_for(@pool.number) if @pool.serves?),
                      **live_connections, reforks: reforks, failures: failures,
                      suspended: (true if suspended?), sizing: sizing }]]
        end

        def generations = many("generation", known.map { |generation| facts(generation) })

        # The condition that the refork policy waits for.
        def policy = many("refork", [@pool.generations.reforks.explain])

        # Memory that each mold inherits and hands down.
        def leak = many("leak", [@pool.generations.cold_boots.explain])

        # Threads that forked processes lack.
        def lost_threads
          size = @pool.roster.ready_workers.size
          threads = @pool.generations.lost_threads.explain
          many("lost_thread", threads.map { |one| { **one, workers: (size if one[:held]) } })
        end

        # Workers that are not promoted because a request has changed their process.
        def changed_states = many("changed_state", @pool.generations.changed_state.explain)

        # Paths that workers refuse because they have ended others.
        def refused_paths
          many("refused_path", @pool.poison.refused.map { |one| { **one, seconds: one[:seconds].round(1) } })
        end

        def throttles
          many("throttle", [*@pool.throttles.states, *known.map(&:backoff).reject(&:calm?).map(&:state)])
        end

        # The reactor's counts since the start: a record for each method, for the bytes, and a few for each
        # histogram (Pando::Histogram#records).
        def requests
          counted = @pool.reactors.requests_of(@pool.number) if @pool.serves?
          return [] unless counted

          answers = counted[:answers].filter_map { |method, counts| answer(method, counts) if counts.any?(&:positive?) }
          times = %i[queue duration].flat_map { |kind| counted[kind].records.map { |one| [kind, one] } }
          [*answers, ["traffic", { pool: @name, **counted.slice(:received, :sent) }],
           *times.map { |kind, one| ["times", { pool: @name, kind: kind, **one }] }]
        end

        def process(child)
          return worker(child) if child.worker?

          { pool: (@name unless child.reactor?), name: (@pool.services.name(child) if child.service?),
            generation: (child.generation unless child.reactor?), pid: child.pid, state: child.state }
        end

        private

        # Streams, and connections that the application has taken over (WebSockets); how many are in workers that leave.
        def live_connections
          workers = @pool.roster.workers.select(&:pidfd)
          { live_connections: held(workers), leaving_connections: held(workers.select(&:leaving?)) }
        end

        def held(workers) = positive(workers.sum { |worker| worker.connections + worker.streams })

        # The counts are those of responses with an unknown status, with 1xx, 2xx and so on.
        def answer(method, counts) = ["responses", { pool: @name, method: method, counts: counts.join(",") }]

        def many(word, records) = records.reject(&:empty?).map { |facts| [word, { pool: @name, **facts }] }

        def known
          all = @pool.generations
          [(all.proved unless all.proved.equal?(all.current)), all.current, all.upcoming].compact
        end

        def facts(generation)
          { number: generation.number, state: generation.state, purpose: generation.purpose,
            mold: generation.mold&.pid, age: generation.age,
            released: (true if generation.released?), **proof(generation) }
        end

        # The progress of the canary, or of the watch over all workers after the rollout.
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
            at_once: at_once(child), requests: child.requests,
            **live(child), seconds: job[:seconds], job: job[:request],
            lock_wait: (child.lock_wait if job.any?),
            unsafe: (true unless child.fork_safe?), major_gc_due: (true if child.row.major_gc_due?), **warmth(child),
            **(@pool.options.jobs ? load(child.row) : {}) }
        end

        def live(child)
          { connections: positive(child.connections), streams: positive(child.streams),
            drain_left: child.drain_left&.ceil }
        end

        def positive(number) = (number if number.positive?)

        # Requests that a worker with threads has now.
        def at_once(child) = (child.row.jobs.size if child.worker? && child.threads > 1 && child.pidfd)

        # The jobs of a node.
        def load(row) = { running: row.running, failed: row.failures, lag: row.lag, latency: row.latency&.fdiv(1000) }

        # The last sample of its warmth.
        def warmth(worker)
          sample = worker.sample
          { code: sample&.code_bytes, full: sample&.major_gcs, kinds: sample&.kinds,
            faults: sample&.faults_per_job&.round(2) }
        end

        def doing(child, job)
          return child.state unless child.ready?

          job.empty? ? "idle" : "busy"
        end
      end

      # The state of the cluster in figures, for metrics: all that the reactor counts, each pool's queue and work, how
      # often each event has happened, and how many processes are in which state. Unlike a Snapshot it hardly grows with
      # the number of workers, so that it can be asked for every few seconds.
      # Made by Commands for one `figures`, in the monitor.
      class Figures < Snapshot
        # Processes whose pids one record has.
        AT_ONCE = 100
        # The roles of a generation's processes.
        GENERATED = %i[mold worker].freeze
        PARTS = %i[pool generations requests].freeze

        def each(&block)
          yield "server", server
          @cluster.listeners.waiting.each { |listen, waiting| yield "listener", listen: listen, waiting: waiting }
          PARTS.each { |part| @pools.flat_map(&part).each(&block) }
          yield "counts", counts if counts.any?
          traffic(&block)
          totals(&block)
          processes(&block)
        end

        private

        def traffic
          counters = @cluster.reactors.counters
          yield "counters", counters if counters
          @cluster.pools.each do |pool|
            queue = pool.reactors.counters_of(pool.number) if pool.serves?
            yield "pool_counters", { pool: name(pool), **queue } if queue
            yield "work", { pool: name(pool), **work(pool) }
          end
        end

        def work(pool)
          workers = pool.roster.workers.select(&:pidfd).to_h { |worker| [worker, worker.sample] }
          { threads: pool.roster.threads, **@cluster.tally.work(pool.number, workers), **present(workers) }
        end

        # Sums of what the workers have now.
        def present(workers)
          live = workers.keys
          { connections: live.sum(&:connections), streams: live.sum(&:streams),
            unsafe: live.count { |worker| worker.ready? && !worker.fork_safe? },
            code: workers.values.compact.map(&:code_bytes).max || 0,
            **jobs(live.map(&:row)) }
        end

        # The jobs of nodes: those that run, and how late the others are.
        def jobs(rows)
          { running: rows.sum(&:running), lag: rows.filter_map(&:lag).max || 0,
            latency: rows.filter_map(&:latency).max&.fdiv(1000) }
        end

        def totals
          @cluster.tally.totals.each do |(event, pool, cause), count|
            yield "total", { event: event, pool: pool, cause: cause, count: count }
          end
        end

        def processes(&block)
          groups = @cluster.roster.group_by { |child| [child.role, (pool_name(child) unless child.reactor?)] }
          groups.each do |(role, pool), children|
            children.map { |child| state_of(child) }.tally.each do |state, count|
              yield "group", { role: role, pool: pool, state: state, count: count }
            end
            pids(role, pool, children, &block)
          end
          admin(&block)
        end

        def pids(role, pool, children)
          children.select(&:pid).group_by { |child| child.generation if GENERATED.include?(role) }
                  .each do |generation, same|
            same.map(&:pid).each_slice(AT_ONCE) do |pids|
              yield "pids", { role: role, pool: pool, generation: generation, pids: pids.join(",") }
            end
          end
        end

        def admin
          admin = @cluster.admin.state or return
          yield "group", { role: :admin, state: admin[:state], count: 1 }
          yield "pids", { role: :admin, pids: admin[:pid] } if admin[:pid]
        end

        def state_of(child)
          return child.state unless child.worker? && child.ready?

          child.row.busy_since ? :busy : :idle
        end

        def pool_name(child) = name(@cluster.pools.of(child))
        def name(pool) = (pool.name if named?(pool))
      end
    end
  end
end
