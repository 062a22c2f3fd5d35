# frozen_string_literal: true

require "test_helper"
require "pando/cluster/monitor"
require_relative "support/clock"
require_relative "support/fakes"

# A child's reports that only have to be passed on or counted.
class ClusterChildEventsTest < Minitest::Test
  include ClusterSupport::Listening

  # As much of a pool as is asked.
  class Pool
    def reactors = @reactors ||= ClusterSupport::Recorder.new
    def tally = @tally ||= ClusterSupport::Recorder.new
  end

  def setup
    super
    @pool = Pool.new
    @payload = Struct.new(:options).new(ClusterSupport.options)
    @child_events = Pando::Cluster::ChildEvents.new(@pool, @payload, nil)
    @child = ClusterSupport.roster(1).admit(:worker, 1, 2, ClusterSupport::FakeLink.new, nil)
  end

  def test_a_reader_that_a_worker_gave_up_is_told_of_as_the_reactor_tells
    ["192.0.2.1, 5 bytes/s\nGET /a b", "nonsense", ""].each { |text| @child_events.reader_lost(@child, text) }

    fields = { **@child.identity, count: 1, reason: "write_timeout (1)" }
    assert_equal([{ **fields, slowest: "192.0.2.1, 5 bytes/s", request: "GET /a b" },
                  { **fields, slowest: "nonsense", request: nil }, { **fields, slowest: nil, request: nil }],
                 events("requests.lost").map(&:payload))
  end

  def test_lost_lines_and_damaged_lanes
    @child_events.lines_lost(@child, 12)
    @child_events.lane_corrupt(@child, 3)

    assert_equal [[[:add_lost_lines, 12]], [[:lane_corrupt, 3]]], [@pool.tally.calls, @pool.reactors.calls]
  end
end
