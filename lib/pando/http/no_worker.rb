# frozen_string_literal: true

module Pando
  module HTTP
    # Stands for the worker where a process answers requests without being one: the mold that rehearses, and a test
    # process that serves system tests. Nobody reads what a worker would note down.
    #
    # @api private
    module NoWorker
      module_function

      def slot = 0
      def generation = 0
      def refused_for(*) = nil
      def job_started(*) = nil
      def job_deadline(*) = Sys.now
      def job_streams = nil
      def job_failed = nil
      def job_finished = nil
      def reader_lost(*) = nil
      def soft_deadline_passed? = false
      def leave(_reason) = nil
      def leaving? = false
      def hook?(_name) = false
    end
  end
end
