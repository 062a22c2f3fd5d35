# frozen_string_literal: true

require "pando/sys"

module Pando
  module Cluster
    # Writes what a worker does into its row of the scoreboard, which the monitor reads, and into its process title.
    # Jobs come one after another, or several at once, which are counted now and then. Included by Worker, in the
    # worker's process.
    module JobRecord
      # @return [Integer] jobs done since this process was forked
      def requests = row.requests

      # Tells the monitor whether this process may become a mold.
      def fork_safe=(safe)
        safe ? row.fork_safe! : row.fork_unsafe!
      end

      def fork_safe? = !row.fork_unsafe?

      # Tells the monitor how many long-lived connections (WebSockets) this process holds.
      def connections=(count)
        row.connections = count
      end

      # Tells the monitor that this worker should be replaced when that is convenient, see Replacements.
      def major_gc_due=(due)
        row.major_gc_due = due
      end

      def major_gc_due? = row.major_gc_due?

      # A job begins.
      # @param verb [String] @param subject [String] for the log, without secrets
      # @param soft [Float, nil] seconds until the monitor signals @param hard [Float, nil] until it kills
      def job_started(verb, subject, soft, hard)
        row.start_job(verb, subject, soft, hard)
        Sys.end_title("busy") || Process.setproctitle("#{@title} busy")
      end

      # New deadlines for the running job, counted from now; nil: none.
      # @return [Float] now, in monotonic seconds
      def job_deadline(soft, hard) = row.set_deadlines(soft, hard)

      # The running job has begun to stream its result, which may take long: a rollout does not wait for its end.
      def job_streams = row.streaming!

      def job_finished
        job = row.job_name if @recorder
        sample = row.finish_job
        row.fail_job if @job_failed
        @job_failed = false
        Sys.end_title("idle") || Process.setproctitle("#{@title} idle")
        sampler.take if sample
        @recorder = @recorder.job_finished(job) if @recorder
      end

      # The running job failed on the server's side. It is counted once, when it is done, so that failures stay a share
      # of the finished jobs.
      def job_failed
        @job_failed = true
      end

      # In a process that does several jobs at once: more of them are done.
      # @param failures [Integer] how many of them failed
      def jobs_finished(count, failures)
        sampler.take if row.count_jobs(count, failures)
      end

      # No job runs any more.
      def jobs_rest
        row.rest
        Sys.end_title("idle") || Process.setproctitle("#{@title} idle")
      end

      # Resets the counts, as if no job had been done yet.
      def forget_jobs = row.restart

      def soft_deadline_passed?
        deadline = row.soft_deadline
        !deadline.nil? && Sys.now >= deadline
      end

      private

      def sampler = @sampler ||= Sampler.new(row, payload)
    end

    # Writes a worker's garbage collections, JIT code, page faults and CPU time (Sys::Sample) into its row: at its 1st,
    # 2nd, 4th ... job while it is young, later at most four times a second, and when it becomes idle. Owned by a
    # Worker, in its process.
    class Sampler
      def initialize(row, payload)
        @row = row
        @payload = payload
        @minor = minor
        @major = major
        @jobs = 0
      end

      # Between two jobs.
      def take
        @jobs = @row.requests
        @row.take_sample(@payload.code_bytes, minor - @minor, major - @major)
      end

      # No further job may come for a while.
      def take_if_changed
        take unless @row.requests == @jobs
      end

      private

      def minor = GC.stat(:minor_gc_count)
      def major = GC.stat(:major_gc_count)
    end
  end
end
