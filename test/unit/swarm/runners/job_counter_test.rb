# frozen_string_literal: true

require "test_helper"
require "pando/swarm/runners/rails_app"

# Which of the jobs that Active Job performs a node counts. The gem is not there, so a stand-in sends its events.
class ActiveJobCounterTest < Minitest::Test
  # Active Support's, in as far as it is used.
  class Notifications
    Event = Struct.new(:payload)

    def initialize = @subscribers = []
    def subscribe(pattern, subscriber = nil, &block) = [pattern, subscriber || block].tap { |one| @subscribers << one }
    def unsubscribe(one) = @subscribers.delete(one)
    def tell(name, **payload) = each(name) { |one| one.call(Event.new(payload)) }

    # As Active Job does around a job.
    def perform
      payload = {}
      each("perform.active_job") { |one| one.start("perform.active_job", "id", payload) }
      yield
    rescue StandardError => e
      payload[:exception_object] = e
      raise
    ensure
      each("perform.active_job") { |one| one.finish("perform.active_job", "id", payload) }
    end

    private

    def each(name) = @subscribers.each { |pattern, one| yield one if name.match?(pattern) }
  end

  def setup
    @jobs = Notifications.new
    Object.const_set(:ActiveSupport, Module.new).const_set(:Notifications, @jobs)
    @counter = Pando::Swarm::Runners::RailsApp::JobCounter.new.open
  end

  def teardown
    @counter.close
    Object.send(:remove_const, :ActiveSupport)
  end

  def test_jobs_count_when_they_end
    @jobs.perform { assert_equal [0, 0, 1], numbers }
    assert_raises(RuntimeError) { @jobs.perform { raise "no" } }

    assert_equal [2, 1, 0], numbers
  end

  # perform_now
  def test_a_job_within_another_one_is_a_part_of_it
    @jobs.perform do
      2.times { @jobs.perform { @jobs.perform { assert_equal [0, 0, 1], numbers } } }
      assert_equal [0, 0, 1], numbers
      assert_equal [Thread.current], @counter.threads
    end

    assert_equal [1, 0, 0], numbers
    assert_empty @counter.threads
  end

  # Or its node would pass for one that hangs.
  def test_a_job_within_another_one_is_progress
    @jobs.perform do
      before = @counter.progress
      @jobs.perform { assert_equal before + 1, @counter.progress }
      assert_equal before + 2, @counter.progress
    end
  end

  def test_the_failure_of_a_job_within_another_one_is_up_to_the_outer_one
    @jobs.perform do
      assert_raises(RuntimeError) { @jobs.perform { raise "no" } }
      @jobs.perform { @jobs.tell("discard.active_job", error: RuntimeError.new) }
    end

    assert_equal [1, 0, 0], numbers
    assert_raises(RuntimeError) { @jobs.perform { @jobs.perform { raise "no" } } }
    assert_equal [2, 1, 0], numbers
  end

  def test_a_job_that_is_to_be_tried_again_has_failed_if_it_had_an_error
    @jobs.perform { @jobs.tell("enqueue_retry.active_job", error: RuntimeError.new) }
    @jobs.perform { @jobs.tell("enqueue_retry.active_job", error: nil) }

    assert_equal [2, 1, 0], numbers
  end

  def test_jobs_on_several_threads_count_each
    @jobs.perform { Thread.new { @jobs.perform { assert_equal [0, 0, 2], numbers } }.join }

    assert_equal [2, 0, 0], numbers
  end

  private

  def numbers = [@counter.done, @counter.failed, @counter.in_progress]
end
