# frozen_string_literal: true

require "test_helper"
require "support/rails_app"

# A fresh `rails new` app with one line of its Gemfile changed.
class StockAppTest < Minitest::Test
  def teardown
    @server&.kill
    @app&.remove
  end

  def test_serves_in_production
    @app = Support::RailsApp.create
    @server = @app.serve(environment: "production", config: "workers 2", env: { "RAILS_LOG_TO_STDOUT" => "1" })

    answer = @server.get("/up", "X-Forwarded-Proto" => "https") # Rails 8 assumes TLS, 7.1 redirects to it
    assert_equal 200, answer.status, @server.output
    assert_includes answer.body, "background-color: green"
    assert_predicate @server.stop, :success?
  end
end
