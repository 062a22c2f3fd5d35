# frozen_string_literal: true

require_relative "real_app"

class SinatraAppTest < Minitest::Test
  include RealApp

  def app = "sinatra"
end
