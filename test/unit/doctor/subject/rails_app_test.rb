# frozen_string_literal: true

require "test_helper"
require "open3"
require "support/checkout"
require "pando/doctor/subject/rails_app"

# All files of a Rails application are loaded in the environment test.
class DoctorEagerLoadTest < Minitest::Test
  # What is asked of Rails, and what it did.
  RAILS = <<~RUBY
    require "pando/doctor/subject/rails_app"
    STEPS = []
    module ActiveSupport; def self.run_load_hooks(name, _) = STEPS << name; end
    module Zeitwerk; class Loader; def self.eager_load_all = STEPS << :all; end; end
    Part = Class.new { def self.eager_load! = ARGV[2] ? raise("broken\\nfile") : STEPS << :part }
    Settings = Struct.new(:eager_load, :eager_load_namespaces)
    module Rails
      def self.env = ARGV[0]
      def self.application = @application ||= Struct.new(:config).new(Settings.new(ARGV[1] == "loaded", [Part]))
    end
    Pando::Doctor::Subject::RailsApp.eager_load
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

# `--requests routes`: which of the routes of Rails can be asked for as they are.
class DoctorRailsRoutesTest < Minitest::Test
  Route = Struct.new(:verb, :spec, :required_parts, :internal) do
    def path = self
  end
  Router = Struct.new(:routes)
  Application = Struct.new(:routes)

  def test_get_routes_without_parameters_each_once
    paths = paths_of(["GET", "/"], ["GET", "/notes(.:format)"], ["GET", "/notes/:id(.:format)", [:id]],
                     ["POST", "/notes(.:format)"], ["GET", "/files/*path", [:path]], ["GET", "/notes(.:format)"],
                     ["GET", "/rails/info", [], true], ["GET|POST", "/both"], ["", "/mounted"])

    assert_equal(["/", "/notes", "/both"], paths)
  end

  private

  def paths_of(*routes)
    routes = routes.map { |verb, spec, parts, internal| Route.new(verb, spec, parts || [], internal || false) }
    Pando::Doctor::Subject::RailsApp.routes(Application.new(Router.new(routes)))
  end
end
