# frozen_string_literal: true

require "test_helper"
require "pando/admin/app"

class AdminAppTest < Minitest::Test
  # A monitor that does not answer.
  module Silent
    def self.snapshot(*) = raise(Pando::Admin::Monitor::Unavailable, "the monitor does not answer")
  end

  # Lets everybody in.
  module Open
    def self.check(*, **) = nil
  end

  def test_a_silent_monitor_is_no_missing_page
    app = Pando::Admin::App.new(Silent, Open, nil, nil, nil)
    %w[/metrics /livez /readyz /status.json /slow /slow.log /history.json].each do |path|
      status, _, body = app.call("PATH_INFO" => path, "REQUEST_METHOD" => "GET")

      assert_equal([503, %({"error":"the monitor does not answer"}\n)], [status, body.join], path)
    end
  end
end
