# frozen_string_literal: true

require_relative "real_app"

class RailsAppTest < Minitest::Test
  include RealApp

  def app = "rails"
end
