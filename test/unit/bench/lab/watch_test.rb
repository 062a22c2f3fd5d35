# frozen_string_literal: true

require_relative "../bench_helper"
require "support/lab/watch"
require "support/servers/pando"
require "support/servers/pitchfork"

# Which processes count as workers that can serve.
class LabWatchTest < Minitest::Test
  FakeServer = Struct.new(:worker_title, :generation_title, :pid)
  FakeGroup = Struct.new(:listed) do
    def pids(_root) = listed
  end

  def teardown
    Array(@pids).each { |pid| Process.kill(:KILL, pid) && Process.wait(pid) }
  end

  def test_pandos_workers_count_neither_while_they_boot_nor_while_they_drain
    pids = processes("pando worker 1 gen 10 idle", "pando worker 2 gen 10 busy", "pando worker 3 gen 10 booting",
                     "pando worker 4 gen 10 draining idle", "pando worker 5 gen 10 draining busy", "pando mold gen 10")

    assert_equal pids.first(2), watch(Bench::Servers::Pando, pids).look.workers
  end

  def test_pitchforks_count_neither_while_they_start_nor_while_they_end
    pids = processes("pitchfork (gen:1) worker[0] - requests: 3, waiting", "pitchfork (gen:1) worker[1] - ready",
                     "pitchfork (gen:1) worker[2] - init", "pitchfork (gen:0) worker[3] - exiting",
                     "pitchfork (gen:1) mold - ready")

    assert_equal pids.first(2), watch(Bench::Servers::Pitchfork, pids).look.workers
  end

  def test_a_process_that_still_has_its_parents_title_does_not_count
    pids = processes("pando worker 1 gen 0 idle", "pando worker 1 gen 0 idle", "pando worker 1 gen 1 idle")
    sight = watch(Bench::Servers::Pando, pids).look

    assert_equal [pids[0], pids[2]], sight.workers
    assert_equal [pids[1]], sight.others
  end

  def test_the_fewest_are_those_that_can_serve
    pids = processes("pando worker 1 gen 0 idle", "pando worker 2 gen 0 booting")
    watch = watch(Bench::Servers::Pando, pids)
    watch.look

    assert_equal 1, watch.fewest
  end

  private

  def watch(kind, pids)
    server = kind.new(app: "", folder: "", environment: {}, workers: 4, **(kind < Bench::Peer ? { bundle: nil } : {}))
    Bench::Lab::Watch.new(FakeServer.new(server.worker_title, server.generation_title, 0), FakeGroup.new(pids))
  end

  # @return [Array<Integer>] pids of processes with these titles
  def processes(*titles)
    reader, writer = IO.pipe
    @pids = titles.map do |title|
      fork do
        Process.setproctitle(title)
        writer.puts
        sleep
      ensure
        exit!(1)
      end
    end
    titles.size.times { reader.gets }
    [reader, writer].each(&:close)
    @pids.sort
  end
end
