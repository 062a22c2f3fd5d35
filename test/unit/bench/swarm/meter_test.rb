# frozen_string_literal: true

require_relative "../bench_helper"
require "tmpdir"
require "io/wait"
require "support/waiting"
require "support/swarm/ledger"

# What processes that do jobs tell, and what is read of it.
class SwarmMeterTest < Minitest::Test
  include Support::Waiting

  def test_the_ledger_knows_of_each_job_its_process_and_that_ones_ancestors
    metered do |ledger, middleware|
      3.times { |place| middleware.call(nil, { "place" => place }, "default") { nil } }
      in_child { 2.times { middleware.call(nil, { "place" => 7 }, "default") { nil } } }
      wait_until { ledger.size == 5 }

      assert_equal([[1, 0, 0], [2, 0, 1], [3, 0, 2], [1, 3, 7], [2, 3, 7]],
                   ledger.done.map { |one| [one.number, one.ancestors, one.job] })
      assert_equal([3, 2], ledger.done.map(&:pid).tally.values)
      refute(ledger.done.any?(&:failed))
    end
  end

  def test_a_job_that_raises_counts_as_failed
    metered do |ledger, middleware|
      assert_raises(RuntimeError) { middleware.call(nil, {}, "default") { raise "no" } }
      wait_until { ledger.size == 1 }

      assert ledger.done.first.failed
    end
  end

  def test_only_the_time_of_the_jobs_own_thread_counts
    metered do |ledger, middleware|
      GC.disable # otherwise a GC could come in between
      middleware.call(nil, {}, "default") { Thread.new { 200_000.times { Object.new } }.join }
      middleware.call(nil, {}, "default") { 200_000.times { Object.new } }
      GC.enable
      wait_until { ledger.size == 2 }

      assert_operator ledger.done.first.cpu, :<, ledger.done.last.cpu
    end
  end

  private

  def metered
    Dir.mktmpdir do |folder|
      ledger = Bench::Swarm::Ledger.new(File.join(folder, "pipe"))
      Bench::Swarm::Meter.begin(File.join(folder, "pipe"))
      yield ledger, Bench::Swarm::Meter::Middleware.new
    ensure
      ledger&.close
    end
  end

  def in_child
    pid = fork do
      yield
      exit!(0)
    end
    assert_predicate Process.wait2(pid).last, :success?
  end
end
