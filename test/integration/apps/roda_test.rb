# frozen_string_literal: true

require_relative "real_app"

class RodaAppTest < Minitest::Test
  include RealApp

  def app = "roda"
end
