# frozen_string_literal: true

require "pando/admin/monitor"
require "pando/config"
require "pando/histogram"

module Pando
  module Admin
    # What the table of metrics reads its values from: the monitor's records of one moment, and what the admin process
    # has measured. Made for each answer. Several values are a Hash: each by its labels, most often the pool.
    class MetricsSource
      ROLES = %w[worker mold reactor service admin].freeze
      # By role, as in `group` records.
      STATES = Hash.new(%w[ordered adopted ready leaving].freeze)
                   .merge("worker" => %w[ordered adopted idle busy leaving].freeze,
                          "admin" => %w[starting ready restarting].freeze).freeze
      OUTCOMES = %w[exited failed killed lost].freeze
      # Other names of a mold's end as told: Cluster::Generations::ENDS.
      ENDS_OF_MOLDS = %w[retired discarded refused released].freeze
      # Of the counts in `responses` records.
      CLASSES = %w[unknown 1xx 2xx 3xx 4xx 5xx].freeze
      REFORKS = %w[started finished refused withheld].freeze
      # Reasons to kill a worker, and parts of a new generation that may fail: see Cluster::Tally.
      KILLS = %w[timeout standstill late_exit blocked_queue memory operator].freeze
      FAILURES = %w[canary watch mold worker check fork spawn].freeze
      # Counters of http/stats.h by the value of a label.
      SHED = { "max_connections" => "shed_connections", "max_connections_per_address" => "shed_address",
               "max_queue" => "shed_queue", "queue_timeout" => "shed_queue_time", "stopping" => "shed_stopping",
               "spool" => "shed_spool", "buffer_memory" => "shed_memory", "file_size" => "shed_file_size",
               "resources" => "shed_resources", "idle" => "evicted" }.freeze
      REFUSED = { "malformed" => "refused_malformed", "cut_off" => "refused_cut_off",
                  "too_large" => "refused_too_large", "max_body_bytes" => "refused_body_size",
                  "spool" => "refused_spool_size", "unsupported" => "refused_unsupported",
                  "proxy_header" => "refused_proxy", "header_timeout" => "refused_header_time",
                  "body_timeout" => "refused_body_time" }.freeze
      LOST = { "bad_gateway" => "failed_502", "gateway_timeout" => "failed_504", "reset" => "resets",
               "slow_client" => "slow_readers", "no_room" => "cut_readers" }.freeze

      class << self
        # @return [Integer] always the same, though the monitor tells its uptime in tenths of a second
        def start_time(uptime) = @start_time ||= (Time.now.to_f - uptime).round
      end

      def initialize(snapshot, survey)
        @snapshot = snapshot
        @survey = survey
      end

      def all(word) = @snapshot.all(word)
      def server = @snapshot.one("server")

      def start_time = MetricsSource.start_time(server["uptime"])

      def pool(name) = name || Config::WEB

      # The labels of a process.
      def place(role, pool)
        { role: role, pool: (pool(pool) unless %w[monitor reactor admin].include?(role)) }.compact
      end

      # The monitor tells only states that some process has.
      def processes
        counted = all("group").to_h { |one| [{ **place(one["role"], one["pool"]), state: one["state"] }, one["count"]] }
        places = [*counted.keys.map { |labels| labels.except(:state) }, *places_that_may_be_empty].uniq
        states = places.flat_map { |labels| STATES[labels[:role]].map { |state| { **labels, state: state } } }
        { **states.to_h { |labels| [labels, 0] }, **counted }
      end

      # @return [Hash] empty in direct mode
      def traffic(name = nil)
        counts = @snapshot.one("counters") or return {}
        name ? { {} => counts[name] } : yield(counts)
      end

      # @param names [Hash{String => String}] counters by the value of the label
      def traffic_by(label, names)
        traffic { |counts| names.to_h { |value, name| [{ label => value }, counts[name]] } }
      end

      def queue(name) = by_pool(all("pool_counters"), name)

      # @return [Hash] requests by pool, method and class of status
      def answers
        return answers_of_workers if traffic("requests").empty?

        all("responses").each_with_object({}) do |one, values|
          one["counts"].to_s.split(",").zip(CLASSES) do |count, status|
            values[{ pool: pool(one["pool"]), method: one["method"], status: status }] = count.to_i
          end
        end
      end

      # @param kind [String] "queue" or "duration"
      def times(kind) = histograms(kind).transform_keys { |pool| { pool: pool } }

      # @return [Hash{String => Pando::Histogram}] the same by the name of the pool
      def histograms(kind)
        records = all("times").select { |one| one["kind"] == kind }.group_by { |one| pool(one["pool"]) }
        records.transform_values { |slices| Pando::Histogram.of(slices) }
      end

      def bytes(name) = by_pool(all("traffic"), name)

      # What workers have done, or have now.
      def work(name, jobs: false)
        records = all("work")
        records = records.select { |one| nodes?(one["pool"]) } if jobs
        by_pool(records, name)
      end

      # Values of the records of pools, or of the server that has one pool.
      def of_pools(key, default = nil)
        records = all("pool")
        records = [server] if records.empty?
        records.to_h do |one|
          value = block_given? ? yield(one[key]) : one.fetch(key, default)
          [{ pool: pool(one["name"]) }, value]
        end
      end

      def current(key)
        by_pool(all("generation").select { |one| one["state"] == "current" }, key)
      end

      # Counts of events, by labels: those of one event, or of all.
      # @yieldparam event [String] @yieldparam pool [String, nil] @yieldparam cause [String, nil]
      # @yieldreturn [Hash, nil] the labels; nil: it does not count
      def totals(event = nil, cause: nil)
        counts = event ? totals_by_event.fetch(event, []) : all("total")
        counts.each_with_object(Hash.new(0)) do |one, sums|
          next if cause && one["cause"] != cause

          labels = yield(one["event"], one["pool"], one["cause"])
          sums[labels] += one["count"] if labels
        end
      end

      # Counts of one event by pool, with a zero where it has not happened: else an alert would miss the first time.
      def totals_by_pool(event, cause: nil)
        { **zeros, **totals(event, cause: cause) { |_, pool, _| { pool: pool(pool) } } }
      end

      # The same by pool and cause.
      # @param known [Array<String>] the causes beside "other"
      def totals_by_cause(event, known)
        { **labelled(:cause, [*known, "other"].to_h { |cause| [cause, zeros] }),
          **totals(event) { |_, pool, cause| { pool: pool(pool), cause: cause || "other" } } }
      end

      # Ends of processes, with zeros for the reactor, if there is one: an alert waits for its first death.
      def exits
        { **traffic { OUTCOMES.to_h { |outcome| [{ role: "reactor", outcome: outcome }, 0] } },
          **totals { |event, pool, _| end_of_process(event, pool) } }
      end

      # Adds a label.
      # @param values [Hash{String => Hash}] values by their other labels, by the value of this one
      def labelled(label, values)
        values.map { |value, one| one.transform_keys { |labels| { **labels, label => value } } }.reduce(:merge)
      end

      def total(event) = totals(event) { { of: event } }.values.sum

      # @return [Integer] one of the counts of `pando status`
      def count(name) = @snapshot.one("counts").to_h.fetch(name, 0)

      # A process that is not measured yet counts like the mean of the others with its labels, so that a rollout makes
      # no dip. Where there is no process, it is 0: systems that keep the last value would show that of a released mold.
      # @param kind [Symbol] :pss, :private or :shared
      def memory(kind)
        empty = (places_that_may_be_empty - places.keys).to_h { |labels| [labels, 0] }
        places.each_with_object(empty) do |(labels, pids), sizes|
          total = total_memory(kind, pids)
          sizes[labels] = total if total
        end
      end

      # @return [Boolean] whether some process of each role and pool is measured
      def measured? = places.each_value.all? { |pids| pids.any? { |pid| @survey[pid] } }

      # The PSS of the molds and workers.
      # @return [Hash{String => Hash{Integer => Integer}}] bytes by pool and generation
      def memory_of_generations
        sums = Hash.new { |all, pool| all[pool] = {} }
        @snapshot.generations.each do |(pool, number), pids|
          total = total_memory(:pss, pids)
          sums[pool(pool)][number] = total if total
        end
        sums
      end

      private

      def by_pool(records, name) = records.to_h { |one| [{ pool: pool(one["pool"]) }, one[name]] }

      # In direct mode only the workers count, and only whether a request has failed.
      def answers_of_workers
        all("work").reject { |one| nodes?(one["pool"]) }.each_with_object({}) do |one, values|
          requests, failures = one.values_at("requests", "failures").map(&:to_i)
          { "unknown" => requests - failures, "5xx" => failures }.each do |status, count|
            values[{ pool: pool(one["pool"]), method: "unknown", status: status }] = count
          end
        end
      end

      # @return [Hash, nil] labels; nil: the event is no end of a process
      def end_of_process(event, pool)
        role, verb = event.split(".")
        outcome = role == "mold" && ENDS_OF_MOLDS.include?(verb) ? "exited" : verb
        { **place(role, pool), outcome: outcome } if ROLES.include?(role) && OUTCOMES.include?(outcome)
      end

      def zeros = of_pools("name") { 0 }

      # A generation may have released its mold.
      def places_that_may_be_empty
        workers = zeros.keys.map { |pool| { role: "worker", **pool } }
        workers + all("generation").map { |one| place("mold", one["pool"]) }
      end

      def totals_by_event = @totals_by_event ||= all("total").group_by { |one| one["event"] }

      # @return [Hash{Hash => Array<Integer>}] the pids of the processes by role and pool
      def places
        @places ||= @snapshot.processes.group_by { |role, pool, _| [role, pool] }
                             .each_with_object(Hash.new { |all, labels| all[labels] = [] }) do |(key, processes), all|
          all[place(*key)].concat(processes.map(&:last))
        end
      end

      # @return [Integer, nil] bytes; nil: no process is measured yet
      def total_memory(kind, pids)
        sizes = pids.filter_map { |pid| size(kind, @survey[pid]) }
        sizes.sum * pids.size / sizes.size if sizes.any?
      end

      def size(kind, usage)
        return unless usage

        kind == :shared ? usage.pss - usage.private : usage.public_send(kind)
      end

      def nodes?(pool) = @snapshot.kinds[pool] == "node"
    end
  end
end
