# frozen_string_literal: true

require "test_helper"
require "minitest/mock"
require "pando/config/node_line"
require "pando/swarm/runners/karafka"
require_relative "../../cluster/support/clock"

class SwarmKarafkaRunnerTest < Minitest::Test
  include ClusterSupport::Clock

  Karafka = Pando::Swarm::Runners::Karafka
  Group = Struct.new(:id)
  Topic = Struct.new(:subscription_group)
  Consumer = Struct.new(:messages, :topic)
  UNKNOWN = { "fetch_state" => "active", "stored_offset" => -1001,
              "consumer_lag" => -1, "consumer_lag_stored" => -1 }.freeze

  def setup
    @counters = Karafka::Counters.new
  end

  def test_the_gem_that_is_missing_is_named
    error = assert_raises(Pando::BootError) { Karafka.load(Pando::Config::NodeKind.new(files: [])) }

    assert_match(/needs the gem karafka/, error.message)
  end

  def test_a_batch_is_progress_when_it_begins_when_it_is_done_and_when_it_fails
    assert_progress { @counters.on_consumer_consume({}) }
    assert_progress { @counters.on_consumer_consumed({ caller: consumer(%w[one two three]) }) }
    assert_progress { @counters.on_error_occurred({ type: "consumer.consume.error", caller: consumer([]) }) }
    refute_progress { @counters.on_error_occurred({ type: "librdkafka.error" }) }
    assert_equal [3, 1], [@counters.done, @counters.failed]
  end

  def test_polling_is_no_progress
    refute_progress { poll("one") }
    refute_progress { @counters.on_client_events_poll({ subscription_group: Group.new("one") }) }
    refute_progress { 2.times { tell(0 => { "stored_offset" => 7 }) } }
  end

  def test_what_is_marked_as_consumed_within_a_batch_is_progress
    tell(0 => { "stored_offset" => 7 }, 1 => { "stored_offset" => -1001 })

    assert_progress { tell(0 => { "stored_offset" => 8 }, 1 => { "stored_offset" => -1001 }) }
    assert_progress { tell(0 => { "stored_offset" => 8 }, 1 => { "stored_offset" => 1 }) }
  end

  def test_lag_is_that_of_the_partitions_that_are_read_by_what_is_known_of_each
    assert_nil @counters.lag
    tell(0 => { "consumer_lag_stored" => 5, "consumer_lag" => 9 },
         1 => { "consumer_lag_stored" => -1, "consumer_lag" => 30 },
         2 => { "consumer_lag_stored" => 700, "fetch_state" => "none" },
         -1 => { "consumer_lag_stored" => 700 })

    assert_equal 35, @counters.lag
    tell({ 0 => { "consumer_lag_stored" => 100 } }, "another group")
    assert_equal 135, @counters.lag
  end

  def test_the_listener_that_has_been_silent_for_longest_counts
    at(10) { poll("one") }
    at(15) { poll("two") }

    at(20) { assert_equal 10, @counters.silent_for }
    at(30) { poll("one") }
    at(31) { assert_equal 16, @counters.silent_for }
  end

  def test_a_listener_that_waited_for_its_consumer_has_not_been_silent
    at(10) { poll("one") }
    at(100) { @counters.on_consumer_consumed({ caller: consumer([], "one") }) }

    at(101) { assert_equal 1, @counters.silent_for }
  end

  def test_a_new_run_counts_anew
    @counters.on_consumer_consumed({ caller: consumer(%w[one]) })
    tell(0 => {})
    @counters.start

    assert_equal [0, 0, 0, nil], [@counters.progress, @counters.done, @counters.failed, @counters.lag]
  end

  private

  def poll(group) = @counters.on_connection_listener_fetch_loop({ subscription_group: Group.new(group) })

  def at(seconds)
    ClusterSupport::Clock.stopped_at = seconds
    yield
  end

  def consumer(messages, group = "one") = Consumer.new(messages, Topic.new(Group.new(group)))

  # What librdkafka says of the partitions of a topic.
  def tell(partitions, group = "group")
    said = partitions.to_h { |number, more| [number.to_s, { "partition" => number, **UNKNOWN, **more }] }
    @counters.on_statistics_emitted({ subscription_group_id: group,
                                      statistics: { "topics" => { "numbers" => { "partitions" => said } } } })
  end

  def assert_progress(&block) = assert_operator(progress_by(&block), :>, 0)
  def refute_progress(&block) = assert_equal(0, progress_by(&block))

  def progress_by
    before = @counters.progress
    yield
    @counters.progress - before
  end
end
