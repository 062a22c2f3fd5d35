# frozen_string_literal: true

module Pando
  module Testing
    # Connects a run to Minitest 5 or 6. The results so far are in the reporter, which the heir has in its memory.
    class MinitestPlug
      # Prepended to Minitest: a run, from its arguments to its status.
      module Run
        def run(args = [])
          first = Process.pid
          autorun = caller_locations(1, 2).any? { |place| place.base_label == "autorun" }
          RailsPlug.install
          passed = super
        ensure
          MinitestPlug.conclude(passed) if autorun && Process.pid != first
        end

        # Minitest 5
        def __run(reporter, options) = MinitestPlug.all(reporter) { super }

        # Minitest 6
        def run_all_suites(reporter, options) = MinitestPlug.all(reporter) { super }
      end

      # Prepended to Minitest 5's test classes. A class whose tests run in threads has its own method instead.
      module RunOneMethod
        def run_one_method(klass, method_name, reporter) = MinitestPlug.one(klass, method_name, reporter) { super }
      end

      # Prepended to Minitest 6's test classes.
      module RunOne
        def run(klass, method_name, reporter) = MinitestPlug.one(klass, method_name, reporter) { super }
      end

      # Prepended to Minitest's executor, which runs tests in threads.
      module InThreads
        def <<(test)
          Testing.session.runs_in_thread
          super
        end
      end

      class << self
        def install
          Testing.begin
          ::Minitest.singleton_class.prepend(Run)
          ::Minitest::Runnable.singleton_class.prepend(old? ? RunOneMethod : RunOne)
          ::Minitest::Parallel::Executor.prepend(InThreads)
        end

        def old? = Integer(::Minitest::VERSION[/\A\d+/]) < 6

        def result(klass, method_name)
          old? ? ::Minitest.run_one_method(klass, method_name) : klass.new(method_name).run
        end

        def one(klass, method_name, reporter, &block)
          plug = new(reporter)
          rehearsal = -> { complaint(result(klass, method_name)) }
          Testing.session.run("#{klass}##{method_name}", plug, rehearsal: rehearsal, &block)
          throw :pando_over if Testing.session.over?
        end

        def complaint(result)
          result.failure.message unless result.passed? || result.skipped?
        end

        def all(reporter)
          catch(:pando_over) { yield.tap { Testing.session.finish(new(reporter)) } }
        end

        # Minitest does its work at exit only in the process that began the run, so do it in the last one.
        def conclude(passed)
          return if ::Minitest.respond_to?(:allow_fork) && ::Minitest.allow_fork

          pid = Process.pid
          at_exit do
            next unless Process.pid == pid

            ::Minitest.class_variable_get(:@@after_run).reverse_each(&:call)
            exit(passed || false)
          end
        end
      end

      def initialize(reporter)
        @reporter = reporter
      end

      def seed = ::Minitest.seed || 0
      def process = 0

      # Tests in threads may report at the same time.
      def fail(title, message, location)
        @reporter.synchronize { @reporter.record(MinitestCheck.result(title, message, location)) }
      end

      def after_a_crash(tests)
        "The results of up to #{tests} tests are lost, and the remaining tests did not run."
      end

      # Restarts the threads that run the parallel classes after the others.
      def after_refork
        executor = ::Minitest.parallel_executor
        executor = executor.instance_variable_get(:@parallel_executor) || executor
        return unless executor.instance_of?(::Minitest::Parallel::Executor)

        executor.start if executor.instance_variable_get(:@pool)
      end

      def outputs
        reporters = @reporter.respond_to?(:reporters) ? @reporter.reporters : []
        reporters.filter_map { |one| one.io if one.respond_to?(:io) }
      end
    end

    # A finding in the form that Minitest's reporters expect: one more test that failed.
    class MinitestCheck < ::Minitest::Test
      ::Minitest::Runnable.runnables.delete(self)

      def self.result(title, message, location)
        check = new(title)
        failure = ::Minitest::Assertion.new(message)
        failure.set_backtrace([location || "between two tests"])
        check.failures << failure
        check.time = 0
        ::Minitest::Result.from(check)
      end

      def self.runnable_methods = []
      def self.name = "Pando::ForkSafety"

      def method(name) = super(respond_to?(name, true) ? name : :run)
    end

    # Connects a run to the processes of Rails' parallelize(workers: N). Each of them is the first of its own line. The
    # process that distributes the tests runs none itself and does not refork.
    class RailsPlug
      # Prepended to Rails' worker.
      module Work
        def perform_job(job)
          klass, name, reporter = job
          rehearsal = -> { MinitestPlug.complaint(MinitestPlug.result(klass, name)) }
          @pando_plug = RailsPlug.new(@number, @queue.__drburi, ->(result) { safe_record(reporter, result) })
          Testing.session.run("#{klass}##{name}", @pando_plug, rehearsal: rehearsal) { super }
          return unless Testing.session.over?

          # Rails reports the test that the heir began and did not finish. The other tests go on here.
          Testing.session.resume
        end

        # The app's own hooks follow. They may close what is judged here.
        def run_cleanup
          @pando_plug&.judge
          super
        end
      end

      def self.install
        return unless defined?(::ActiveSupport::Testing::Parallelization::Worker)

        ::ActiveSupport::Testing::Parallelization::Worker.prepend(Work)
      end

      DRB_IOS = %i[@socket @shutdown_pipe_r @shutdown_pipe_w].freeze
      private_constant :DRB_IOS

      attr_reader :process

      # @param process [Integer] number of this process among those that run tests
      # @param uri [String] of the distributing process
      # @param record [#call] takes a result
      def initialize(process, uri, record)
        @process = process
        @uri = uri
        @record = record
      end

      def seed = ::Minitest.seed || 0
      def after_refork = nil

      # The connection to the distributing process, over which Rails reports. DRb keeps a pipe beside each socket.
      def outputs
        connections = ObjectSpace.each_object(::DRb::DRbTCPSocket).select { |one| one.uri == @uri }
        connections.flat_map { |one| DRB_IOS.filter_map { |name| one.instance_variable_get(name) } }
      end

      def after_a_crash(_tests) = "The results of earlier tests are kept, and the remaining tests go on."
      def fail(title, message, location) = @record.call(MinitestCheck.result(title, message, location))

      # After an exception Rails would wait for this process for ever.
      def judge
        Testing.session.finish(self)
      rescue StandardError => e
        message = "what the last generation of process #{process} lost or shared is unknown: #{e.message} (#{e.class})"
        warn "pando: #{message}"
        report(message, e.backtrace&.first)
      end

      private

      def report(message, location)
        fail("last generation", message, location)
      rescue StandardError
        nil # the distributing process cannot be reached, and stderr has the message
      end
    end
  end
end
