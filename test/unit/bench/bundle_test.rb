# frozen_string_literal: true

require_relative "bench_helper"
require "support/bundle"
require "tmpdir"

class BundleTest < Minitest::Test
  # Bundler finds no versions that fit together if it must take the gems that are there.
  class Picky < Bench::Bundle
    attr_reader :calls

    def initialize(folder, gemfile)
      super("picky", gemfile)
      @folder = folder
      @calls = []
    end

    private

    def bundler(*arguments, out: nil)
      @calls << arguments
      out && File.write(out, "Could not find compatible versions")
      arguments.first == "install" && !arguments.include?("--prefer-local")
    end
  end

  def test_gems_that_are_there_already_are_no_obstacle_to_a_bundle_that_needs_other_versions
    Dir.mktmpdir do |folder|
      File.write(gemfile = File.join(folder, "gems.rb"), "")
      bundle = Picky.new(File.join(folder, "bundle"), gemfile)

      assert_output("", "installing the gems of bundle ...\n") { bundle.prepare }
      assert_equal %w[install --quiet], bundle.calls.last
    end
  end
end
