# frozen_string_literal: true

require "test_helper"
require "timeout"
require "pando/config"
require "pando/http/reactor_setup"

# What a new lane takes, and when the monitor has to doubt that requests are taken at all.
class HTTPReactorSetupTest < Minitest::Test
  def setup
    @setup = Pando::HTTP::ReactorSetup.new(Pando::Config.load([], env: {}))
    @channel = @setup.descriptors.first
    @stats = { "queued" => 0, "set_aside" => 0, "shed_queue" => 5, "responses" => 100, "turns" => 1000 }
    look
  end

  def look(turns: 1, **more)
    @stats["turns"] += turns
    more.each { |name, count| @stats[name.to_s] += count }
    @channel.stub(:stats, -> { @stats.dup }) { @setup.blocked? }
  end

  def test_a_lane_that_cannot_be_made_leaves_nothing_open
    before = open_descriptors
    Pando::HTTP::Channel.stub(:lane, -> { raise Errno::EMFILE }) do
      Timeout.timeout(20) { assert_raises(Errno::EMFILE) { @setup.lane } }
    end

    assert_equal before, open_descriptors
  end

  def open_descriptors = Dir.children("/proc/self/fd").size

  def test_nothing_waits
    refute look
    refute look(responses: 1)
  end

  def test_requests_wait_and_none_is_answered
    assert look(queued: 1)
    assert look
    refute look(queued: -1)
  end

  def test_requests_wait_for_slow_readers
    refute look(queued: 1, set_aside: 1)
    assert look(queued: 1)
  end

  def test_requests_are_sent_away_and_none_is_answered
    assert look(shed_queue: 3)
    refute look
  end

  def test_the_reactor_stands_still
    refute look(queued: 1, turns: 0)
    assert look
  end

  # Others are busy, or so fast that idle ones are not woken.
  def test_requests_wait_and_others_are_answered
    refute look(queued: 3, responses: 1)
    refute look(shed_queue: 1, responses: 1)
  end
end
