# frozen_string_literal: true

require "pando/cluster/monitor"
require_relative "clock"
require_relative "fakes"

module ClusterSupport
  # For tests of deadlines: children without processes, and a clock that the test moves.
  module DeadlinesCase
    include Clock

    Deadlines = Pando::Cluster::Deadlines

    def setup
      @roster = ClusterSupport.roster
      @observer = Recorder.new
      @deadlines = Deadlines.new(@roster, @observer, ClusterSupport.options(longest_wait: 0.0, check_timeout: 2.0))
    end

    def child(role = :worker, state: :ready, source: nil)
      @roster.admit(role, 0, 0, FakeLink.new, source).tap do |child|
        child.adopt(FakePidfd.new(100)) unless state == :ordered
        child.become_ready if state == :ready
        child.row.beat
      end
    end

    # As time goes by: the monitor looks at least at each tick.
    def enforce_for(seconds)
      (seconds / 0.5).ceil.times do
        elapse(0.5)
        yield if block_given?
        @deadlines.enforce
      end
    end
  end
end
