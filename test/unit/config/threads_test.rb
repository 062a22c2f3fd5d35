# frozen_string_literal: true

require_relative "config_test_case"
require "pando/native"

# The configuration is read without the extension, which has the bounds that these numbers follow.
class ThreadsSettingTest < ConfigTestCase
  def test_no_more_threads_than_the_reactor_has_lanes
    assert_equal Pando::HTTP::Channel::LANES, Pando::Config::Threads::LIMIT
  end

  def test_each_has_a_job_in_the_scoreboard_beside_the_main_thread
    most = Pando::Sys::Row::JOBS - 1

    assert_equal most, Pando::Config.load(["--threads", most.to_s], env: {}, dir: @dir).threads
    assert_raises(Pando::ConfigError) { Pando::Config.load(["--threads", (most + 1).to_s], env: {}, dir: @dir) }
  end
end
