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

      def self.install
        Testing.begin
        ::RSpec::Core::Example.prepend(RunExample)
        ::RSpec.configure do |config|
          config.backtrace_exclusion_patterns << %r{/lib/pando/testing/}
          config.after(:suite) { Testing.session.finish(RSpecPlug.new(::RSpec.configuration.reporter)) }
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
