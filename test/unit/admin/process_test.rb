# frozen_string_literal: true

require "test_helper"
require "pando/admin/process"

class AdminProcessTest < Minitest::Test
  # The process could not start without one of them.
  def test_its_clients_have_every_limit
    assert_equal(Pando::HTTP::Limits::NAMES.sort, Pando::Admin::LIMITS.keys.sort)
  end
end
