# frozen_string_literal: true

require "test_helper"
require "etc"
require "support/kafka_swarm"

# Nodes that consume from Kafka are killed and reforked at work, and lose their broker: each message has been consumed
# at the end, and those of a partition in their order. KAFKA_MESSAGES, KAFKA_REFORKS, KAFKA_KILLS and KAFKA_AWAY
# (seconds) say how much of it.
class SwarmKafkaChaosTest < Minitest::Test
  include Support::KafkaSwarm

  MESSAGES = Integer(ENV.fetch("KAFKA_MESSAGES", "3000"), 10)
  REFORKS = Integer(ENV.fetch("KAFKA_REFORKS", "1"), 10)
  KILLS = Integer(ENV.fetch("KAFKA_KILLS", "2"), 10)
  AWAY = Float(ENV.fetch("KAFKA_AWAY", "3"))
  SEED = Integer(ENV.fetch("CHAOS_SEED", Random.new_seed % 1_000_000))
  # Of one CPU, for each node: nothing runs in circles. Over a few seconds another number comes out on each machine.
  CPU = AWAY < 20 ? 0.5 : 0.05

  def test_none_is_lost_and_their_order_is_kept
    random = Random.new(SEED)
    steps = [*[:refork] * REFORKS, *[:kill] * KILLS].shuffle(random: random)
    share = MESSAGES.fdiv(PARTITIONS * (steps.size + 1)).ceil
    start("PACE" => (0.0005 if MESSAGES < 10_000)&.to_s)
    steps.each do |step|
      produce(share)
      wait_for_messages(share)
      step == :refork ? @server.refork(patience: PATIENCE * 2) : kill_one(random)
    end
    produce(share)
    finish(steps)
  end

  def test_a_broker_that_goes_away_is_waited_for
    start
    consume_everywhere
    before = nodes.map(&:pid).sort
    @broker.down
    used = before.to_h { |pid| [pid, cpu(pid)] }
    IO.select(nil, nil, nil, AWAY)
    used = used.to_h { |pid, former| [pid, (cpu(pid) - former) / AWAY] }
    used.each { |pid, share| assert_operator share, :<, CPU, "CPUs of node #{pid}" }
    report "broker away for #{AWAY} s: its nodes took #{used.values.map { |share| share.round(4) }} CPUs"
    @broker.up
    consume_everywhere

    assert_equal before, nodes.map(&:pid).sort
    assert_all_in_order
    assert_predicate @server.stop, :success?
  end

  private

  def kill_one(random)
    wait_until(timeout: PATIENCE, message: "#{NODES} nodes") { nodes.size == NODES }
    Process.kill("KILL", nodes.map(&:pid).sort.sample(random: random))
  end

  def finish(steps)
    wait_for_messages(timeout: PATIENCE * 4)

    assert_all_in_order
    assert_successors_are_born_last
    assert_predicate @server.stop, :success?
    report "#{@produced * PARTITIONS} messages, #{steps.tally}: #{@effects.repeats} came again (seed #{SEED})"
  end

  # @return [Float] seconds of CPU time so far, proc_pid_stat(5)
  def cpu(pid)
    File.read("/proc/#{pid}/stat").rpartition(")").last.split[11, 2].sum(&:to_i).fdiv(Etc.sysconf(Etc::SC_CLK_TCK))
  end

  def report(text) = (puts text if ENV["KAFKA_MESSAGES"] || ENV["KAFKA_AWAY"])
end
