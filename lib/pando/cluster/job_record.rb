# frozen_string_literal: true

module Pando
  module Cluster
    # Writes one job after another into a row of the scoreboard, which the monitor reads. Included by Worker, for the
    # jobs of its main thread, and by ThreadRecord, for those of another thread. It wants
    #
    #   row           Sys::Row
    #   job_number    which of the row's jobs this is
    #   job_begins    called when a job has begun
    #   job_over(job, sample)   and when it is over; its name, if pages are recorded, and whether a sample is due
    module JobRecord
      # @param verb [String] @param subject [String] for the log, without secrets
      # @param soft [Float, nil] seconds until the monitor signals @param hard [Float, nil] until it kills
      def job_started(verb, subject, soft, hard)
        row.start_job(verb, subject, soft, hard, job_number)
        job_begins
      end

      # New deadlines for the running job, counted from now; nil: none.
      # @return [Float] now, in monotonic seconds
      def job_deadline(soft, hard) = row.set_deadlines(soft, hard, job_number)

      # Another worker has died while it had the running job.
      def job_retried = row.retried!(job_number)

      # The running job has begun to stream its result, which may take long: a rollout does not wait for its end.
      def job_streams = row.streaming!(job_number)

      def streams? = row.streaming?(job_number)

      def job_finished
        job = row.job_name(job_number) if recording?
        sample = row.finish_job(job_number)
        row.fail_job if @job_failed
        @job_failed = false
        job_over(job, sample)
      end

      # The running job failed on the server's side. It is counted when it is done, as a share of the finished jobs.
      def job_failed
        @job_failed = true
      end

      # The running job has outlived its soft deadline. That counts at once, since the worker may be killed before the
      # job is done.
      def job_timed_out
        job_failed
        row.count_timeout
      end

      # @return [Float] seconds that the job has waited for the interpreter lock so far
      def lock_wait = row.lock_wait(job_number)

      def soft_deadline_passed?
        deadline = row.soft_deadline(job_number)
        !deadline.nil? && Sys.now >= deadline
      end
    end

    # The jobs of one thread of a worker that has several. Owned by that thread's code, see HTTP::ThreadedHandler.
    class ThreadRecord
      include JobRecord

      attr_reader :row, :job_number

      # @param number [Integer] from 1: job 0 is the main thread's
      def initialize(worker, number)
        @worker = worker
        @row = worker.row
        @job_number = number
      end

      # In the thread, before its first job.
      def follow_lock
        row.follow_lock(job_number)
        self
      end

      private

      def job_begins = @worker.job_begins
      def job_over(job, sample) = @worker.job_over(job, sample)
      def recording? = @worker.recording?
    end

    # Writes a worker's garbage collections, JIT code, page faults and CPU time (Sys::Sample) into its row: at its 1st,
    # 2nd, 4th ... job while it is young, later at most four times a second, and when it falls idle. Owned by a Worker.
    class Sampler
      def initialize(row, payload)
        @row = row
        @payload = payload
        @minor = minor
        @major = major
        @time = time
        @jobs = 0
      end

      # Between two jobs.
      def take
        @jobs = @row.requests
        @row.take_sample(@payload.code_bytes, minor - @minor, major - @major, time - @time)
      end

      # No further job may come for a while.
      def take_if_changed
        take unless @row.requests == @jobs
      end

      private

      def minor = GC.stat(:minor_gc_count)
      def major = GC.stat(:major_gc_count)
      def time = GC.stat(:time)
    end
  end
end
