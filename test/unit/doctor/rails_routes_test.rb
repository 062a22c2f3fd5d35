# frozen_string_literal: true

require "test_helper"
require "pando/doctor/subject/rails_routes"

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
    Pando::Doctor::Subject::RailsRoutes.paths(Application.new(Router.new(routes)))
  end
end
