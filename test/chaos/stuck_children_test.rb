# frozen_string_literal: true

require "test_helper"
require "support/c_program"
require "support/servers"

# Each mold has a thread in C that holds a lock now and then, which every child needs: some forks catch it.
# Workers die, generations come and go; the cluster gets whole each time, and no request is lost.
class StuckChildrenTest < Minitest::Test
  include Support::Servers

  WORKERS = 3
  STUCK = 3 # children, then it is enough
  PATIENCE = 90 # seconds to be whole again
  # A child that was replaced already has no successor to wait for: its end is news as well.
  NEWS = %w[worker.ready worker.exited worker.killed worker.lost generation.discarded refork.refused].freeze

  APP = <<~RUBY
    require "fiddle"
    library = Fiddle.dlopen(ENV.fetch("HELD_LOCK"))
    FLICKER, TAKE = %w[held_lock_flicker held_lock_take].map do |name|
      Fiddle::Function.new(library[name], [], Fiddle::TYPE_INT)
    end
    run ->(env) { [200, {}, [Process.pid.to_s]] }
  RUBY

  CONFIG = <<~RUBY.freeze
    workers #{WORKERS}
    refork :manual
    self_check timeout: 2
    self_check { TAKE.call }
    after_mold_fork { FLICKER.call if File.exist?("fault") }
  RUBY

  def test_the_cluster_gets_whole
    @server = serve(app: APP, config: CONFIG, env: { "HELD_LOCK" => Support::CProgram.library("held_lock") })
    @server.write("fault", "")
    answers = under_requests(@server) do
      (0..).each { |round| (disturb(round) && stuck.size < STUCK) || break }
      wait_until_whole
    end

    assert_equal [200], answers.uniq
    stuck.each do |event|
      assert_match(/\Aself_check at .*pando\.rb:\d+\z/, event["step"])
      assert_includes event["reason"], "stuck in its self-check"
    end
    assert_equal 0, @server.stop.exitstatus
  end

  private

  def stuck = @server.events("check.failed")

  def disturb(round)
    @server.wait_for(*NEWS, patience: PATIENCE) do
      round.odd? ? Process.kill("TERM", @server.workers.sample.pid) : @server.signal("USR2")
    end
  rescue Errno::ESRCH
    true # it has just been replaced
  end

  def wait_until_whole
    wait_until(timeout: PATIENCE, message: -> { "a whole cluster: #{@server.processes.map(&:title)}" }) do
      @server.workers.count { |worker| worker.title.match?(/ (idle|busy)\z/) } == WORKERS && @server.mold
    end
  end
end
