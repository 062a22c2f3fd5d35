# frozen_string_literal: true

module Pando
  module Testing
    # Connects a run to the processes of Rails' parallelize(workers: N). Each of them is the first of its own line. The
    # process that distributes the tests runs none itself and does not refork.
    #
    # @api private
    class RailsPlug
      # Prepended to Rails' worker.
      module PerformJob
        def perform_job(job)
          klass, name, reporter = job
          rehearsal = -> { MinitestPlug.complaint(MinitestPlug.result(klass, name)) }
          plug = RailsPlug.new(->(result) { safe_record(reporter, result) })
          Testing.session.run("#{klass}##{name}", plug, rehearsal: rehearsal) { super }
          return unless Testing.session.over?

          # Rails reports the test that the heir began and did not finish. The other tests go on here.
          Testing.session.resume
        end
      end

      def self.install
        return if @installed || !defined?(::ActiveSupport::Testing::Parallelization::Worker)

        @installed = true
        ::ActiveSupport::Testing::Parallelization::Worker.prepend(PerformJob)
      end

      def initialize(record)
        @record = record
      end

      def seed = ::Minitest.seed || 0
      def after_refork = nil
      def outputs = []
      def after_a_crash(_tests) = "The results of earlier tests are kept, and the remaining tests go on."
      def fail(title, message, location) = @record.call(MinitestCheck.result(title, message, location))
    end
  end
end
