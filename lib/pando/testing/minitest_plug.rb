# frozen_string_literal: true

require "pando/testing/minitest_check"
require "pando/testing/rails_plug"

module Pando
  module Testing
    # Joins a run to Minitest 5 or 6. The results so far are in the reporter, which the heir has.
    #
    # @api private
    class MinitestPlug
      # On Minitest's own module: a run, from its arguments to its status.
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

      # On Minitest 5's classes of tests. A class whose tests run in threads has its own method instead.
      module RunOneMethod
        def run_one_method(klass, method_name, reporter) = MinitestPlug.one(klass, method_name, reporter) { super }
      end

      # On Minitest 6's.
      module RunOne
        def run(klass, method_name, reporter) = MinitestPlug.one(klass, method_name, reporter) { super }
      end

      class << self
        def install
          return if @installed

          @installed = true
          Knowledge.begin
          Strict.install if Testing.settings.strict
          ::Minitest.singleton_class.prepend(Run)
          ::Minitest::Runnable.singleton_class.prepend(old? ? RunOneMethod : RunOne)
        end

        def old? = Integer(::Minitest::VERSION[/\A\d+/]) < 6

        # @return [Object] what a reporter needs to be told of one test
        def result(klass, method_name)
          old? ? ::Minitest.run_one_method(klass, method_name) : klass.new(method_name).run
        end

        def one(klass, method_name, reporter, &block)
          plug = new(reporter)
          rehearsal = -> { complaint(result(klass, method_name)) }
          Testing.session.run("#{klass}##{method_name}", plug, rehearsal: rehearsal, &block)
          throw :pando_over if Testing.session.over?
        end

        # @return [String, nil]
        def complaint(result)
          result.failure.message unless result.passed? || result.skipped?
        end

        def all(reporter)
          catch(:pando_over) { yield.tap { Testing.session.finish(new(reporter)) } }
        end

        # What Minitest does at exit, it does in the process that began the run only.
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
      def fail(title, message, location) = @reporter.record(MinitestCheck.result(title, message, location))

      def after_a_crash(tests)
        "What its tests had shown is lost (up to #{tests} tests), and the tests after it have not run."
      end

      # Its threads wait for classes that run in parallel, when the others are done.
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
  end
end
