# frozen_string_literal: true

require "test_helper"
require "support/kafka_swarm"
require "support/runner_rules"

# Karafka's consumers in job nodes, against librdkafka's own mock of a Kafka cluster.
class SwarmKafkaTest < Minitest::Test
  include Support::KafkaSwarm
  include Support::RunnerRules

  def test_its_runner_keeps_the_rules
    assert_keeps_the_rules("karafka", base, files: [file])
  end

  def test_nodes_are_reforked_as_static_members_that_are_never_twice_alive
    start("STATIC" => "pando")
    consume_everywhere
    @server.refork(patience: PATIENCE)
    consume_everywhere

    assert_equal %w[pando_0_0 pando_0_0 pando_1_0 pando_1_0], members.values.sort
    assert_successors_are_born_last
    assert_empty troubles
    assert_predicate @server.stop, :success?
    assert_all_in_order
  end

  def test_nothing_is_lost_by_a_kill_or_a_stop_at_work
    start("PACE" => "0.002")
    produce(300)
    wait_for_messages(1100)
    Process.kill("KILL", nodes.first.pid)
    wait_for_messages(800)
    assert_predicate @server.stop, :success?
    start
    wait_for_messages
    assert_all_in_order
  end
end
