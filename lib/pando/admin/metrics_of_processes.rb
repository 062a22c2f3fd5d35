# frozen_string_literal: true

module Pando
  module Admin
    # The second half of the table: processes, generations, memory and jobs.
    module Metrics
      # Processes.

      gauge("workers_wanted", %i[pool], "Workers or nodes that the pool is to have.") { |s| s.of_pools("workers") }
      gauge("workers_ready", %i[pool], "Workers or nodes that are ready.") { |s| s.of_pools("ready") }
      gauge("processes", %i[role pool state],
            "Processes by role and state. A worker is idle or busy, or on its way in or out.") do |s|
        s.all("group").to_h { |one| [{ **s.place(one["role"], one["pool"]), state: one["state"] }, one["count"]] }
      end
      gauge("worker_threads", %i[pool], "Requests that one worker serves at a time.") { |s| s.work("threads") }
      gauge("workers_fork_unsafe", %i[pool], "Ready workers that cannot become a mold.") do |s|
        s.work("unsafe")
      end
      counter("process_exits_total", %i[role pool outcome],
              "Processes that have ended: as told (exited), before they were ready (failed), killed by the monitor " \
              "(killed), or unexpectedly (lost).") do |s|
        s.totals do |event, pool, _|
          role, outcome = event.split(".")
          next unless MetricsSource::ROLES.include?(role) && MetricsSource::OUTCOMES.include?(outcome)

          { role: role, pool: (s.pool(pool) unless %w[reactor admin].include?(role)), outcome: outcome }.compact
        end
      end
      counter("workers_killed_total", %i[pool cause],
              "Workers that the monitor has killed: for #{MetricsSource::KILLS.join(", ")} or another cause.") do |s|
        s.totals_by_cause("worker.killed", MetricsSource::KILLS)
      end
      counter("workers_oom_killed_total", %i[pool], "Workers that the kernel has killed for lack of memory.") do |s|
        s.totals_by_pool("worker.lost", cause: "oom")
      end
      counter("workers_outgrown_total", %i[pool], "Workers replaced because they took too much memory.") do |s|
        s.totals_by_pool("worker.leaving", cause: "memory")
      end
      counter("restarts_throttled_total", %i[pool], "Restarts put off because a process died again and again.") do |s|
        s.totals_by_pool("restart.throttled")
      end

      # Generations.

      gauge("generation_number", %i[pool], "The generation that serves.") { |s| s.current("number") }
      gauge("generation_age_seconds", %i[pool], "Time since its mold was started.") { |s| s.current("age") }
      counter("reforks_total", %i[pool outcome], "Reforks: started, finished, refused or withheld.") do |s|
        s.labelled(:outcome, MetricsSource::REFORKS.to_h { |one| [one, s.totals_by_pool("refork.#{one}")] })
      end
      counter("generations_discarded_total", %i[pool cause],
              "New generations that failed, by what failed: canary, watch, mold, worker, check, fork or spawn.") do |s|
        s.totals_by_cause("generation.discarded", MetricsSource::FAILURES)
      end
      gauge("refork_suspended", %i[pool],
            "1 if too many reforks in a row have failed, so that Pando does not try again.") do |s|
        s.of_pools("suspended", 0) { |value| value ? 1 : 0 }
      end
      counter("reloads_total", %i[outcome], "Reloads: started, finished or failed.") do |s|
        %w[started finished failed].to_h { |one| [{ outcome: one }, s.total("reload.#{one}")] }
      end
      counter("upgrades_total", %i[outcome], "Upgrades of the monitor: finished or failed.") do |s|
        { { outcome: "finished" } => s.total("monitor.upgraded"), { outcome: "failed" } => s.total("upgrade.failed") }
      end

      # Memory and work.

      { pss: "Memory of processes, with shared pages divided among the processes that share them (PSS)",
        private: "Memory that only one process has",
        shared: "Memory that processes share, each page counted once: PSS less private memory" }.each do |kind, text|
        gauge("memory_#{kind}_bytes", %i[role pool], "#{text}. Measured in the background.") { |s| s.memory(kind) }
      end
      gauge("jit_code_bytes", %i[pool],
            "Machine code that Ruby's JIT has compiled, in the worker with the most.") do |s|
        s.work("code")
      end
      counter("worker_cpu_seconds_total", %i[pool], "CPU time of workers, as of their last samples.") do |s|
        s.work("cpu")
      end
      counter("worker_page_faults_total", %i[pool],
              "Pages that workers were given without reading from disk, mostly copied on write.") do |s|
        s.work("faults")
      end
      counter("worker_gc_total", %i[pool kind], "Garbage collections in workers: minor or major.") do |s|
        s.labelled(:kind, "minor" => s.work("minor_gcs"), "major" => s.work("major_gcs"))
      end
      counter("worker_gc_seconds_total", %i[pool], "Time of these collections.") { |s| s.work("gc_time") }
      counter("worker_lock_wait_seconds_total", %i[pool],
              "Time that finished requests have waited for the interpreter lock, where workers have threads.") do |s|
        s.work("lock_wait")
      end

      # Jobs.

      counter("jobs_total", %i[pool], "Jobs that nodes have done.") { |s| s.work("requests", jobs: true) }
      counter("jobs_failed_total", %i[pool], "Jobs that have failed.") { |s| s.work("failures", jobs: true) }
      gauge("jobs_running", %i[pool], "Jobs that run now.") { |s| s.work("running", jobs: true) }
      gauge("jobs_waiting", %i[pool], "Jobs that wait, if the broker reports them.") { |s| s.work("lag", jobs: true) }
      gauge("jobs_latency_seconds", %i[pool],
            "Time that the oldest waiting job has waited, with Sidekiq, Solid Queue and GoodJob.") do |s|
        s.work("latency", jobs: true).compact
      end
    end
  end
end
