# frozen_string_literal: true

module Pando
  module Testing
    # A finding in the form that Minitest's reporters expect: one more test that failed.
    #
    # @api private
    class MinitestCheck < ::Minitest::Test
      ::Minitest::Runnable.runnables.delete(self)

      # @return [Minitest::Result]
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
  end
end
