# frozen_string_literal: true

require "pando/http/timeout"
require "pando/sys"

module Pando
  module HTTP
    # What a connection needs of its worker: the application, the worker object, the record of its jobs
    # (Cluster::JobRecord), {Limits}, the {RequestReader}, the {SoftTimeout}, its pid and how many forks led to it. One
    # for each thread that serves. A {Connection} reads all but the application when it is made, and never again.
    WorkerContext = Struct.new(:app, :worker, :record, :limits, :reader, :soft_timeout, :pid, :forks) do
      def self.for(worker, app, limits, reader, soft_timeout, record: worker)
        new(app, worker, record, limits, reader, soft_timeout, Process.pid, Sys.forks)
      end

      # @return [Boolean] whether this is a process that the application forked
      def stray? = Sys.forks != forks
    end

    # Stands for the worker in a process that answers requests without being one: a mold that warms itself up, and a
    # test process that serves system tests. It records nothing.
    module NoWorker
      module_function

      def slot = 0
      def generation = 0
      def refused_for(*) = nil
      def job_started(*) = nil
      def job_deadline(*) = Sys.now
      def job_streams = nil
      def job_retried = nil
      def lock_wait = 0.0
      def job_failed = nil
      def job_finished = nil
      def reader_lost(*) = nil
      def soft_deadline_passed? = false
      def leave(_reason) = nil
      def leaving? = false
      def hook?(_name) = false
      def run_hook(*) = nil
    end
  end
end
