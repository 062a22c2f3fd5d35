# frozen_string_literal: true

require "test_helper"
require "pando/config/node_line"
require "pando/swarm/job_handler"
require "support/in_child"

# When a node collects garbage while its jobs run.
class SwarmJobHandlerTest < Minitest::Test
  include Support::InChild

  Runner = Struct.new(:busy, :progress, :done) do
    attr_reader :told

    def busy? = busy
    def quiet = @told = "quiet"
    %i[start stop].each { |name| define_method(name) { nil } }
  end

  # Stands for Refork::Collector.
  Collector = Struct.new(:deferred, :collected) do
    def start(_worker) = self.collected = 0
    def deferred? = deferred
    def between(&) = self.collected += 1
  end

  # Stands for Cluster::Worker.
  class Worker
    def slot = 0
    def finish_within = 1.0
    def row = self
    %i[jobs_finished set_load job_started jobs_rest].each { |name| define_method(name) { |*| nil } }
  end

  def started(runner, collector)
    make = ->(_node) { runner }
    Pando::Swarm::JobHandler.new(Pando::Config::NodeKind.new, make, 1.0, collector).tap { |one| one.start(Worker.new) }
  end

  # In a process of its own, because a node sets signal handlers.
  # @param states [Array<Array(Boolean, Integer)>] of the runner at each look: whether it is busy, and its jobs done
  # @return [Array<Array>] the pulse after each, and how often garbage was collected
  def pulses(*states, deferred: true)
    in_child do
      runner = Runner.new(false, 0, 0)
      collector = Collector.new(deferred)
      handler = started(runner, collector)
      states.map do |busy, done|
        runner.busy = busy
        runner.done = done
        handler.idle
        [handler.pulse, collector.collected]
      end
    end
  end

  def test_while_jobs_run_and_when_some_have_just_ended
    assert_equal([[nil, 0], [0.05, 1], [0.05, 2], [nil, 2]], pulses([false, 0], [true, 0], [false, 3], [false, 3]))
  end

  # Between two looks after its jobs.
  def test_a_node_that_gets_the_signal_takes_no_further_job
    told = in_child do
      handler = started(runner = Runner.new(true, 0, 0), Collector.new(false))
      Process.kill(:TSTP, Process.pid)
      handler.pulse
      runner.told
    end

    assert_equal("quiet", told)
  end

  # It was asked to fork, and its jobs did not end in time.
  def test_a_node_that_is_quiet_does_not_go_on_after_a_fork_that_was_given_up
    states = in_child do
      handler = started(runner = Runner.new(true, 0, 0), Collector.new(false))
      resting = handler.rest?
      handler.go_on
      handler.quiet
      runner.busy = false
      handler.idle
      [resting, handler.rest?, handler.pulse]
    end

    assert_equal([false, true, nil], states)
  end

  def test_not_where_full_collections_are_left_to_ruby
    assert_equal([[nil, 0]], pulses([true, 1], deferred: false))
  end
end
