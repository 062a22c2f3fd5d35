# frozen_string_literal: true

require "test_helper"
require "pando/server/cluster_options"

class TimeScaleTest < Minitest::Test
  def read(text) = Pando::Server::TimeScale.read({ "PANDO_TIME_SCALE" => text }.compact)

  def test_a_second_is_a_second_unless_the_environment_says_otherwise
    assert_equal [1.0, 60.0], [read(nil), read("60")]
  end

  def test_what_is_no_scale_is_refused_with_what_to_do
    %w[0 -1 0.5 fast nan Infinity].each do |text|
      error = assert_raises(Pando::ConfigError, text) { read(text) }

      assert_match(/PANDO_TIME_SCALE must be a number of 1 or more, and is .*: set it for load tests only/,
                   error.message)
    end
  end
end
