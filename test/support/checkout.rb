# frozen_string_literal: true

require "rbconfig"

module Support
  # The checkout under test and how to start its programs in other processes.
  module Checkout
    ROOT = File.expand_path("../..", __dir__)

    module_function

    # @return [String] absolute path of a file in the checkout
    def path(*names)
      File.join(ROOT, *names)
    end

    # The command that starts Pando from the checkout on the Ruby that runs the tests.
    #
    # @return [Array<String>]
    def pando(*arguments)
      [RbConfig.ruby, "-I", path("lib"), path("exe/pando"), *arguments.map(&:to_s)]
    end

    # Runs the block in the environment in which the test runner was started, without the runner's own bundle, so that a
    # program started in it finds its own gems.
    def without_bundle(&block)
      defined?(Bundler) ? Bundler.with_unbundled_env(&block) : yield
    end
  end
end
