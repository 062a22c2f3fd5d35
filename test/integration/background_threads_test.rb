# frozen_string_literal: true

require "test_helper"
require "support/servers"

# A library's fork callbacks and background thread in the server's processes.
class BackgroundThreadsTest < Minitest::Test
  include Support::Servers

  # GET /ITEM gives the thread something to do. What it has done, and what it saw at a fork, is in files.
  APP = <<~'RUBY'
    NOTES = File.expand_path("notes.log", __dir__)
    NOTE = ->(*what) { File.write(NOTES, "#{what.join(" ")}\n", mode: "a") }

    tasks = -> { Dir.children("/proc/self/task").map { |task| File.read("/proc/self/task/#{task}/comm").chomp } }
    Pando::ForkSafety.register("spy", before: -> { NOTE["fork", Thread.list.size, tasks.call.count("flusher")] })
    FLUSHER = Pando::ForkSafety.thread("flusher") do |thread|
      while (item = thread.pop)
        NOTE["done", item, Process.pid, Pando.pid]
      end
    end

    run lambda { |env|
      item = env["PATH_INFO"].delete("/")
      FLUSHER << item unless item.empty?
      [200, {}, ["#{Process.pid} #{Pando.pid} #{FLUSHER.alive?}"]]
    }
  RUBY

  def test_a_thread_lives_in_each_process_and_never_while_it_is_copied
    server = serve(app: APP, config: "workers 2\nrefork :manual")
    3.times do |generation|
      server.refork unless generation.zero?
      server.wait_past("generation.current", generation: generation)
      10.times do |number|
        pid, ours, alive = server.get("/#{generation}-#{number}").body.split

        assert_equal [pid, "true"], [ours, alive]
      end
      wait_until(message: "all to be done") { notes(server, "done").size == 10 * (generation + 1) }
    end

    assert_equal 30, notes(server, "done").map(&:first).uniq.size, "each item once"
    assert(notes(server, "done").all? { |_, pid, ours| pid == ours })
    assert_equal [%w[1 0]], notes(server, "fork").uniq, "one thread, and no native one of that name"
    assert_operator notes(server, "fork").size, :>=, 8
    assert_empty(server.events.select { |event| event["event"].end_with?(".failed", ".lost", ".killed") })
    assert_predicate server.stop, :success?
  end

  def test_a_thread_that_does_not_stop_refuses_the_fork_by_name
    app = <<~RUBY
      held = Thread::Queue.new
      holding = false
      Pando::ForkSafety.thread("reporter", within: 0.1) do |thread|
        thread.wait(0.01) until holding || thread.stopping?
        held.pop if holding
      end
      run ->(env) { holding = env["PATH_INFO"] == "/hold"; [200, {}, []] }
    RUBY
    server = serve(app: app, config: "workers 1\nrefork :manual")
    server.get("/hold")
    failed = server.wait_for("fork.failed", "generation.discarded") { server.signal("USR2") }

    assert_match(/the background thread reporter \(.*config.ru:3\) did not end within 0.1 s/, failed["reason"])
    assert_equal 200, server.get("/").status
  end

  # It was at something long: that is not the generation's fault.
  def test_a_fork_that_a_thread_has_refused_is_tried_again
    app = <<~RUBY
      rounds = 0
      Pando::ForkSafety.thread("reporter", within: 0.1) do |thread|
        thread.wait(60)
        sleep(0.5) if (rounds += 1) == 1
      end
      run ->(env) { [200, {}, []] }
    RUBY
    server = serve(app: app, config: "workers 1")

    assert_match(/the background thread reporter .* did not end/, server.wait_past("fork.failed")["reason"])
    assert_equal 0, server.events("generation.current").first["generation"]
    assert_empty server.events("generation.discarded")
  end

  def test_a_callback_that_raises_in_the_child_fails_that_child_by_name
    server = serve(ready: false, app: <<~RUBY, config: "workers 1")
      Pando::ForkSafety.register("cache", child: -> { raise "no cache today" })
      run ->(env) { [200, {}, []] }
    RUBY
    failed = server.wait_past("worker.failed")

    assert_match(/callback cache in the child after a fork at .*config.ru:1 raised RuntimeError: no cache today/,
                 failed["reason"])
    assert_operator failed["pid"], :>, 1
  end

  # The monitor must know the process by then, or nobody would end it.
  def test_a_callback_that_hangs_in_the_child_is_killed
    server = serve(ready: false, app: <<~RUBY, config: "workers 1\nspawn_timeout 3")
      Pando::ForkSafety.register("cache", child: -> { sleep })
      run ->(env) { [200, {}, []] }
    RUBY
    killed = server.wait_past("worker.killed", "worker.failed")
    wait_until(message: "the child to be gone") { !File.exist?("/proc/#{killed["pid"]}") }

    assert_operator killed["pid"], :>, 1
  end

  def test_a_callback_that_raises_in_the_forker_is_an_event
    server = serve(app: <<~RUBY, config: "workers 1")
      Pando::ForkSafety.register("cache", parent: -> { raise "no cache today" })
      run ->(env) { [200, {}, []] }
    RUBY

    reason = server.wait_past("hook.failed")["reason"]
    assert_match(/callback cache in the parent after a fork .* no cache today/, reason)
    assert_equal 200, server.get("/").status
  end

  private

  def notes(server, kind)
    path = File.join(server.folder, "notes.log")
    lines = File.exist?(path) ? File.readlines(path, chomp: true).map(&:split) : []
    lines.filter_map { |first, *rest| rest if first == kind }
  end
end
