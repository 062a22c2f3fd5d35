# frozen_string_literal: true

require "test_helper"
require "open3"
require "support/checkout"

class DoctorEagerLoadTest < Minitest::Test
  # What is asked of Rails, and what it did.
  RAILS = <<~RUBY
    require "pando/doctor/subject/eager_load"
    STEPS = []
    module ActiveSupport; def self.run_load_hooks(name, _) = STEPS << name; end
    module Zeitwerk; class Loader; def self.eager_load_all = STEPS << :all; end; end
    Part = Class.new { def self.eager_load! = ARGV[2] ? raise("broken\\nfile") : STEPS << :part }
    Settings = Struct.new(:eager_load, :eager_load_namespaces)
    module Rails
      def self.env = ARGV[0]
      def self.application = @application ||= Struct.new(:config).new(Settings.new(ARGV[1] == "loaded", [Part]))
    end
    EagerLoad = Pando::Doctor::Subject::EagerLoad
    EagerLoad.application&.then { |application| EagerLoad.perform(application) }
    p STEPS
  RUBY

  def test_all_files_are_loaded_in_test_as_in_production
    assert_equal "[:before_eager_load, :all, :part]\n", steps("test", "lazy")
  end

  def test_nothing_is_done_elsewhere
    assert_equal "[]\n", steps("test", "loaded")
    assert_equal "[]\n", steps("development", "lazy")
    assert_equal "[]\n", steps("production", "lazy")
  end

  def test_a_file_that_cannot_be_loaded_ends_nothing
    assert_equal "pando doctor: not all files could be loaded: broken (RuntimeError)\n[:before_eager_load, :all]\n",
                 steps("test", "lazy", "broken")
  end

  private

  def steps(*arguments)
    Open3.capture2e(RbConfig.ruby, "--disable=gems", "-I", Support::Checkout.path("lib"), "-e", RAILS, *arguments).first
  end
end
