# frozen_string_literal: true

require "json"
require "open3"

module Support
  # For tests of the runners that Pando brings along: whether one keeps to what Pando::Swarm::RunnerLint knows, with its
  # library and its broker.
  module RunnerRules
    SCRIPT = File.expand_path("../fixtures/swarm/rules.rb", __dir__)

    private

    # @param environment [Hash] of the library's bundle, and where the broker is
    # @param files [Array<String>] what `require:` would name
    def assert_keeps_the_rules(runner, environment, files:, queues: %w[default], options: {})
      wish = JSON.generate(runner: runner, queues: queues, files: files, options: options)
      command = [RbConfig.ruby, "-W0", "-I", Checkout.path("lib"), SCRIPT, wish]
      problems, errors, status = Open3.capture3(environment, *command)

      assert_predicate status, :success?, errors
      assert_empty problems
    end
  end
end
