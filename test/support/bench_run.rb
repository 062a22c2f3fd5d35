# frozen_string_literal: true

require "json"
require "open3"
require "rbconfig"
require "support/checkout"
require "tmpdir"

module Support
  # Runs a program of bench/ as a user would, for a test that includes this module.
  module BenchRun
    # @param name [String] of the program
    # @return [Array(String, Hash)] what it printed, and its figures
    def run_bench(name, *arguments)
      Dir.mktmpdir do |folder|
        figures = File.join(folder, "figures.json")
        output, status = Checkout.without_bundle do
          Open3.capture2e(RbConfig.ruby, Checkout.path("bench", name), *arguments, "--json", figures)
        end
        assert_predicate status, :success?, output
        [output, JSON.parse(File.read(figures))]
      end
    end
  end
end
