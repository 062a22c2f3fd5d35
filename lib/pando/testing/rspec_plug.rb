# frozen_string_literal: true

module Pando
  module Testing
    # Connects a run to RSpec 3. The results so far are in the reporter, which the heir has in its memory.
    class RSpecPlug
      # Prepended to RSpec's examples.
      module RunExample
        def run(instance, reporter)
          plug = RSpecPlug.new(reporter)
          rehearsal = lambda do
            super(instance, ::RSpec::Core::NullReporter)
            exception&.message
          end
          done = Testing.session.run(full_description, plug, rehearsal: rehearsal) { super(instance, reporter) }
          ::RSpec.world.wants_to_quit = true if Testing.session.over?
          done
        end
      end

      # Prepended to the class of RSpec's groups. A transaction around a group begins in its before(:context). Until it
      # ends there is no refork, so the time for one is before it.
      module RunGroup
        def run(reporter = ::RSpec::Core::NullReporter)
          RSpecPlug.before_group(self, reporter) { |rehearsal| super(rehearsal) }
          super
        end
      end

      # The reporter of a group in strict mode's twin: it has no formatters, and no second example starts.
      class Rehearsal < ::RSpec::Core::Reporter
        %i[example_passed example_failed example_pending].each do |outcome|
          define_method(outcome) do |example|
            super(example)
            ::RSpec.world.wants_to_quit = true
          end
        end

        # Called with what fails outside of an example, as in after(:context).
        def notify_non_example_exception(exception, _context) = (@outside = exception)

        # @return [String, nil] the error message of the example, or of a hook of the group
        def complaint = (failed_examples.first&.exception || @outside)&.message

        # In the twin, which then ends. Hooks of a group report to the run's reporter, whichever the group was given.
        def replace_reporter = ::RSpec.configuration.instance_variable_set(:@reporter, self)
      end

      class << self
        def install
          Testing.begin
          ::RSpec::Core::Example.prepend(RunExample)
          ::RSpec::Core::ExampleGroup.singleton_class.prepend(RunGroup)
          configure
        end

        # @yieldparam reporter [Rehearsal] to run the group with
        def before_group(group, reporter, &run)
          return if ::RSpec.world.wants_to_quit || group.descendant_filtered_examples.empty?

          rehearsal = -> { Rehearsal.new(::RSpec.configuration).tap(&:replace_reporter).tap(&run).complaint }
          hooks = "before(:context) of #{group.metadata[:full_description]}"
          Testing.session.offer(hooks, new(reporter), rehearsal: rehearsal)
          ::RSpec.world.wants_to_quit = true if Testing.session.over?
        end

        private

        def configure
          ::RSpec.configure do |config|
            config.backtrace_exclusion_patterns << %r{/lib/pando/testing/}
            config.after(:suite) { Testing.session.finish(RSpecPlug.new(::RSpec.configuration.reporter)) }
          end
        end
      end

      # RSpec reports it as an error outside of examples.
      class Fault < StandardError; end

      def initialize(reporter)
        @reporter = reporter
      end

      def seed = ::RSpec.configuration.seed
      def process = 0
      def after_refork = nil
      def outputs = ::RSpec.configuration.formatters.filter_map { |one| one.output if one.respond_to?(:output) }

      def after_a_crash(tests)
        "The results of up to #{tests} tests are lost, and the remaining tests did not run."
      end

      def fail(title, message, location)
        fault = Fault.new(message)
        fault.set_backtrace([location].compact)
        @reporter.notify_non_example_exception(fault, "Pando found after a refork: #{title}.")
      end
    end
  end
end
