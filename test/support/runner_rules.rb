# frozen_string_literal: true

require "json"
require "open3"

module Support
  # For tests of Pando's own runners: checks with the library and its broker whether a runner follows the rules of
  # Pando::Swarm::RunnerLint.
  module RunnerRules
    SCRIPT = File.expand_path("../fixtures/swarm/rules.rb", __dir__)

    private

    # @param environment [Hash] of the library's bundle, and the broker's address
    # @param files [Array<String>] for `require:`
    def assert_keeps_the_rules(runner, environment, files:, queues: %w[default], options: {})
      wish = JSON.generate(runner: runner, queues: queues, files: files, options: options)
      command = [RbConfig.ruby, "-W0", "-I", Checkout.path("lib"), SCRIPT, wish]
      problems, errors, status = Open3.capture3(environment, *command)

      assert_predicate status, :success?, errors
      assert_empty problems
    end
  end
end
