# frozen_string_literal: true

require "pando/cluster/sampler"

module Pando
  module Cluster
    # How a worker tells what it is and does: in its row of the scoreboard, which the monitor reads, and in its title.
    # One job after another, or several side by side, which are counted now and then.
    #
    # Of a worker, in its process.
    module JobRecord
      # @return [Integer] jobs done since this process was forked
      def requests = row.requests

      # Tells the monitor whether this process may become a mold.
      # @param safe [Boolean]
      def fork_safe=(safe)
        safe ? row.fork_safe! : row.fork_unsafe!
      end

      def fork_safe? = !row.fork_unsafe?

      # Tells the monitor how many long-lived connections (WebSockets) this process holds.
      # @param count [Integer]
      def connections=(count)
        row.connections = count
      end

      # It had better be replaced, when that suits the others, see Replacements.
      # @param due [Boolean]
      def major_gc_due=(due)
        row.major_gc_due = due
      end

      def major_gc_due? = row.major_gc_due?

      # A job begins.
      # @param verb [String] @param subject [String] what the log shall name, nothing secret
      # @param soft [Float, nil] seconds until the monitor signals @param hard [Float, nil] until it kills
      def job_started(verb, subject, soft, hard)
        row.start_job(verb, subject, soft, hard)
        Sys.end_title("busy") || Process.setproctitle("#{@title} busy")
      end

      # New deadlines for the running job, counted from now; nil: none.
      # @return [Float] now, in monotonic seconds
      def job_deadline(soft, hard) = row.set_deadlines(soft, hard)

      # The running job has begun to give its result, and may take its time over it: a rollout does not wait for
      # its end.
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

      # The running job came to nothing, by a fault of ours. Counted once and when it is done: until then it is none
      # of the requests that failures are a share of.
      def job_failed
        @job_failed = true
      end

      # Of a process that does several jobs at once: so many more are done.
      # @param failures [Integer] of those
      def jobs_finished(count, failures)
        sampler.take if row.count_jobs(count, failures)
      end

      # Nothing runs any more.
      def jobs_rest
        row.rest
        Sys.end_title("idle") || Process.setproctitle("#{@title} idle")
      end

      # As if nothing had been done yet.
      def forget_jobs = row.restart

      # @return [Boolean]
      def soft_deadline_passed?
        deadline = row.soft_deadline
        !deadline.nil? && Sys.now >= deadline
      end

      private

      def sampler = @sampler ||= Sampler.new(row, payload)
    end
  end
end
