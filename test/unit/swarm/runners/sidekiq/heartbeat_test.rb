# frozen_string_literal: true

require "test_helper"
require "support/in_child"

# The thread that talks to Redis beside the jobs. The gem is not there, so each test runs in a process that has
# stand-ins.
class SidekiqHeartbeatTest < Minitest::Test
  include Support::InChild

  # Seconds that the end of a thread may take, and much more.
  PATIENCE = 30

  # Stands for Sidekiq's launcher, and its Redis that never answers.
  class Launcher
    def initialize(asked) = @asked = asked
    def stopping? = true
    def poller = nil

    def heartbeat
      @asked << true
      sleep
    end
  end

  def test_a_stop_does_not_wait_for_a_redis_that_never_answers
    result = in_child do
      load_heartbeat
      asked = Queue.new
      heartbeat = Pando::Swarm::Runners::Sidekiq::Heartbeat.new(nil, Launcher.new(asked), nil, nil)
      asked.pop
      stopped = Thread.new { heartbeat.stop }.join(PATIENCE)
      { stopped: !stopped.nil?, alive: heartbeat.alive? }
    end

    assert_equal({ stopped: true, alive: false }, result)
  end

  # A thread in native code, for instance.
  Unkillable = Struct.new(:waited) do
    def kill = self

    def join(seconds)
      waited << seconds
      nil
    end
  end

  def test_a_thread_that_cannot_be_killed_is_waited_for_a_moment_only
    waited = in_child do
      load_heartbeat
      heartbeat = Pando::Swarm::Runners::Sidekiq::Heartbeat.new(nil, Launcher.new(Queue.new), nil, nil)
      thread = Unkillable.new([])
      heartbeat.instance_variable_set(:@thread, thread)
      heartbeat.stop
      thread.waited
    end

    assert_equal 2, waited.size
    assert_operator waited.last, :<, 1
  end

  private

  def load_heartbeat
    scheduled = Module.new { const_set(:Poller, Class.new) }
    Object.const_set(:Sidekiq, Module.new { const_set(:Scheduled, scheduled) })
    $LOADED_FEATURES << "sidekiq/scheduled.rb"
    require "pando/swarm/runners/sidekiq/heartbeat"
  end
end
