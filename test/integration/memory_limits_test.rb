# frozen_string_literal: true

require "test_helper"
require "support/memory_group"
require "support/servers"

# A worker that grows does not take the machine with it.
class MemoryLimitsTest < Minitest::Test
  include Support::Servers

  MIB = 1024**2

  # /leak keeps a mebibyte a request; /hog keeps on taking.
  APP = <<~RUBY
    LEAK = []
    run(lambda do |env|
      case env["PATH_INFO"]
      when "/leak" then LEAK << ("x" * 1_048_576)
      when "/burst" then LEAK << ("x" * 500_000_000)
      when "/hog" then loop { LEAK << ("x" * 1_048_576) && sleep(0.005) }
      end
      [200, {}, [Process.pid.to_s]]
    end)
  RUBY

  def test_a_leaking_worker_is_replaced_between_two_requests
    server = serve(app: APP, config: "workers 1\nrefork false\nmemory worker: 60.mb")
    first = server.get("/leak").body
    leaving = server.wait_for("worker.leaving") do
      leaker = Thread.new { loop { break if server.get("/leak").body != first } }
      server.wait_past("worker.leaving")
      leaker.join(60)
    end

    assert_match(/\Aits private memory is [\d.]+ MiB, over the limit of 60.0 MiB\z/, leaving["reason"])
    assert_equal(Integer(first), leaving["pid"])
    assert_empty(server.events("worker.lost") + server.events("worker.killed"))
  end

  def test_a_request_that_takes_too_much_is_ended_and_not_tried_again
    server = serve(app: APP, config: "workers 2\nrefork false\nmemory hard: 80.mb\ntimeout 60")
    answer = server.get("/hog")

    assert_equal(502, answer.status)
    killed = server.wait_past("worker.killed")
    assert_equal("GET /hog", killed["request"])
    assert_match(/over the hard limit of 80.0 MiB/, killed["reason"])
    assert_equal(1, server.events("worker.killed").size, "the request was given to nobody else")
    assert_equal(200, server.get("/").status)
  end

  def test_of_all_the_fattest_goes_when_the_tree_is_too_big
    server = serve(app: APP, config: "workers 3\nrefork false\nmemory total: 150.mb")
    Thread.new { loop { server.get("/leak") } }.report_on_exception = false
    leaving = server.wait_past("worker.leaving")

    assert_match(/\Aall processes together take \d+.\d MiB of 150.0 MiB, and of all workers it has most/,
                 leaving["reason"])
  end

  # bench/leak does this for as long as one likes.
  def test_in_a_control_group_a_leak_is_ended_before_the_kernel_ends_it
    in_group(400) do |group|
      server = serve(app: APP, config: "workers 2\nrefork false", wrapper: group.wrapper)
      answers = []
      until departures(server) >= 2 || answers.size > 2000
        answers << server.get("/leak").status
        IO.select(nil, nil, nil, 0.05) if group.used > 320 * MIB # a leak, and no burst
      end

      assert_equal([200], answers.uniq)
      assert_match(/MiB of the 400.0 MiB of the control group are in use/,
                   server.wait_past("worker.leaving", cause: "memory")["reason"])
      assert_empty(server.events("worker.lost") + server.events("worker.killed"))
      assert_equal(0, group.oom_kills)
    end
  end

  def test_whom_the_kernel_has_killed_for_memory_is_told_apart_and_counted
    in_group(300) do |group|
      server = serve(app: APP, wrapper: group.wrapper, config: <<~RUBY)
        workers 2
        refork false
        memory group: false
        control "control.sock"
        oom_score_adj 1000
      RUBY
      assert_equal(502, server.get("/burst").status)
      lost = server.wait_past("worker.lost")

      assert_equal(["oom", "GET /burst"], lost.values_at("cause", "request"))
      assert_match(/OOM killer/, lost["reason"])
      assert_operator(group.oom_kills, :>=, 1)
      server.wait_past("worker.ready", slot: lost["slot"])
      assert_match(/^counts .*worker_lost=1 .*oom_killed=1$/, status(server))
    end
  end

  # The only one that serves, and nobody can take its place yet: it stays, however much it leaks.
  def test_the_last_worker_is_not_given_up
    server = serve(app: APP, config: "workers 1\nrefork false\nmemory worker: 60.mb")
    server.write("config.ru", "raise 'half a deployment'")
    server.wait_for("generation.discarded") { Process.kill("KILL", server.mold.pid) }
    pids = Array.new(60) { server.get("/leak").body }.uniq
    assert_equal(1, pids.size)
    server.wait_for("worker.leaving", pid: Integer(pids.first)) { server.write("config.ru", APP) }

    assert_equal(200, server.get("/").status)
  end

  private

  def in_group(mebibytes)
    group = Support::MemoryGroup.new(mebibytes * MIB)
    skip(group.obstacle) if group.obstacle

    yield group
  ensure
    servers.each(&:kill)
    group&.remove
  end

  def departures(server) = server.events("worker.leaving").size

  def status(server)
    socket = UNIXSocket.new(File.join(server.folder, "control.sock"))
    socket.write("status\n")
    socket.read
  ensure
    socket&.close
  end
end
