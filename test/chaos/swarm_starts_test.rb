# frozen_string_literal: true

require "test_helper"
require "support/sidekiq_swarm"

# Promise: nodes that have just started begin no job twice, whether jobs waited for them or dead nodes held them.
# CHAOS_STARTS says how often a swarm is started.
class SwarmStartsTest < Minitest::Test
  include Support::SidekiqSwarm

  STARTS = Integer(ENV.fetch("CHAOS_STARTS", "6"))
  WAITING = 30
  HELD = 9

  def test_no_job_is_begun_twice_by_a_swarm_that_has_just_started
    held = []
    twice = Array.new(STARTS) do |round|
      waiting = Array.new(WAITING) { |number| "r#{round}w#{number}" }
      before = held
      held = Array.new(HELD) { |number| "r#{round}h#{number}" }
      order(*waiting.map { |name| [name, 0.01] })
      twice_in(waiting + before, held)
    end

    assert_empty twice.compact
  end

  private

  # @param names [Array<String>] of jobs that wait or were held @param held [Array<String>] that are to be held then
  # @return [Hash, nil] what was begun twice
  def twice_in(names, held)
    server = swarm("count: 3, concurrency: 3")
    let_go(server)
    wait_for_end(server, names)
    twice = began(server).reject { |_, pids| pids.size == 1 }
    puts "twice: #{twice} in #{server.folder}" if twice.any?
    leave(server, held)
    twice unless twice.empty?
  ensure
    server&.kill
    @traces&.each_value { |file, _| file.close }
    @traces = nil
  end

  # Dead nodes that hold jobs.
  def leave(server, held)
    File.delete(File.join(server.folder, "go"))
    order(*held.map { |name| [name, 0, "go"] })
    wait_until(message: -> { began(server).slice(*held) }) { (held - began(server).keys).empty? }
  end
end
