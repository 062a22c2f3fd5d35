# frozen_string_literal: true

require "pando/cluster/control/snapshot"

module Pando
  module Cluster
    class Control
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

        # @yieldparam word [String] @yieldparam pairs [Hash{Symbol => Object}]
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
        # @param workers [Hash{Child => Sys::Sample, nil}]
        def present(workers)
          live = workers.keys
          { connections: live.sum(&:connections), streams: live.sum(&:streams),
            unsafe: live.count { |worker| worker.ready? && !worker.fork_safe? },
            code: workers.values.compact.map(&:code_bytes).max || 0,
            **jobs(live.map(&:row)) }
        end

        # What nodes have to do.
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
