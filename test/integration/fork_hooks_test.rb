# frozen_string_literal: true

require "test_helper"
require "support/servers"

# What libraries hang onto Process._fork, and the forks of the application itself.
class ForkHooksTest < Minitest::Test
  include Support::Servers

  APP = <<~'RUBY'
    module ForkHook
      LOG = File.expand_path("forks.log", __dir__)

      def self.note(side)
        File.open(LOG, "a") { |log| log.syswrite("#{side} #{Process.pid} #{Process.ppid}\n") }
      end

      def _fork
        ForkHook.note("asked")
        pid = super
        ForkHook.note(pid.zero? ? "child" : "forker")
        $restarted = Thread.new { sleep } if pid.zero? # as libraries do for their background threads
        pid
      end
    end
    Process.singleton_class.prepend(ForkHook)

    ROUTES = {
      "/threads" => -> { "#{$restarted&.alive?} #{Thread.list.size}" },
      "/fork" => lambda do
        reader, writer = IO.pipe
        pid = fork { writer.syswrite("#{Process.pid} #{Process.ppid}") }
        writer.close
        "#{reader.read} #{Process.wait2(pid)[1].exitstatus}"
      end,
      "/popen" => -> { IO.popen("-") { |child| child ? child.read : print("#{Process.pid} #{Process.ppid} 0") } },
      "/spawn" => lambda do
        reader, writer = IO.pipe
        pid = spawn("echo $$ $PPID", out: writer)
        writer.close
        "#{reader.read.strip} #{Process.wait2(pid)[1].exitstatus}"
      end,
      "/system" => lambda do
        parent = `echo $PPID`.strip
        system("exit 3")
        "#{$?.pid} #{parent} #{$?.exitstatus}"
      end
    }.freeze

    run ->(env) { [200, {}, ["#{Process.pid} #{ROUTES.fetch(env["PATH_INFO"], -> { "" }).call}"]] }
  RUBY

  def test_hooks_run_once_in_each_new_process_and_never_in_a_middle_one
    server = serve(app: APP, config: "workers 3\nrefork :manual")
    server.refork
    server.refork

    molds = pids(server.events("mold.ready"))
    workers = pids(server.events("worker.ready"))
    sources = server.events("refork.started").map { |event| event["source"] }

    wait_until(message: "the notes of all that have forked") do
      noted("forker", server).size == 11 && noted("asked", server).size == 11
    end
    assert_equal([3, 9, 2], [molds.size, workers.size, sources.size])
    assert_equal((molds.drop(1) + workers).sort, noted("child", server).sort)
    assert_equal((molds.flat_map { |pid| [pid] * 3 } + sources).sort, noted("forker", server).sort)
    assert_equal(noted("forker", server).sort, noted("asked", server).sort)
  end

  def test_threads_that_hooks_restart_live_in_the_workers
    server = serve(app: APP, config: "workers 2\nrefork :manual")
    server.refork

    assert_equal("true 2", server.get("/threads").body.split(" ", 2).last)
  end

  # `fork` and IO.popen("-") pass through Process._fork; the hook sees each side once.
  def test_forks_of_the_app_are_ordinary
    each_generation do |server|
      %w[/fork /popen].each do |path|
        worker, child, parent, status = server.get(path).body.split.map(&:to_i)

        assert_equal([worker, 0], [parent, status], path)
        assert_equal(1, noted("child", server).count(child), path)
        refute_includes(noted("forker", server), child)
        assert_equal(worker, server.get("/").body.to_i, "the worker lives on")
      end
    end
  end

  def test_commands_of_the_app_are_ordinary_children
    each_generation do |server|
      { "/spawn" => 0, "/system" => 3 }.each do |path, wanted|
        before = noted("asked", server)
        worker, child, parent, status = server.get(path).body.split.map(&:to_i)

        assert_equal([worker, wanted], [parent, status], path)
        refute_equal(worker, child)
        assert_equal(before, noted("asked", server), "no command passes through Process._fork")
        assert_equal(worker, server.get("/").body.to_i, "the worker lives on")
      end
    end
  end

  private

  def each_generation
    server = serve(app: APP, config: "workers 1\nrefork :manual")
    yield server
    server.refork
    server.wait_past("worker.exited", generation: 0)
    yield server

    assert_empty(server.events("worker.lost"))
    assert_predicate(server.stop, :success?)
  end

  def pids(events) = events.map { |event| event["pid"] }

  def noted(side, server)
    notes = File.readlines(File.join(server.folder, "forks.log")).map(&:split)
    notes.filter_map { |what, pid| pid.to_i if what == side }
  end
end
