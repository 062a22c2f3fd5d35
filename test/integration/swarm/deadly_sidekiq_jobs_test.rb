# frozen_string_literal: true

require "test_helper"
require "support/sidekiq_swarm"

# Promise: a job that kills its node is buried and named, and no other job with it.
class DeadlySidekiqJobsTest < Minitest::Test
  include Support::SidekiqSwarm

  def setup
    super
    @killer = File.join(@folder, "killer.rb")
    File.write(@killer, <<~RUBY)
      require #{JOBS.dump}
      class Killer < Job
        def perform(name, seconds)
          note("began", name)
          sleep(seconds)
          Process.kill(:KILL, Process.pid)
          sleep
        end
      end
    RUBY
  end

  def test_harmless_jobs_beside_those_that_kill_are_done
    server = swarm("count: 3, concurrency: 3", required: @killer)
    names = Array.new(6) { |number| "harmless#{number}" }
    killers = %w[killer0 killer1]
    order(*names.first(3).map { |name| [name, 4] })
    ids = order(*killers.map { |name| [name, 0] }, job: "Killer")
    order(*names.last(3).map { |name| [name, 4] })
    buried = ids.map { |id| server.wait_past("job.buried", id: id, patience: 120) }
    wait_for_end(server, names, patience: 120)

    buried.each do |event|
      assert_equal ["Killer", "default", 4, "error"], event.values_at("name", "queue", "deaths", "level")
    end
    assert_equal 2, @redis.call("ZCARD", "dead")
    assert_equal 2, server.events("job.buried").size
    began(server).values_at(*killers).each { |pids| assert_includes 2..4, pids.size }
    assert_equal [1], ended(server).values_at(*names).map(&:size).uniq
  end
end
