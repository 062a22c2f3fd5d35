# frozen_string_literal: true

require "test_helper"
require "pty"
require "support/servers"

# Promise: what each signal does to the server, and to one of its processes.
class SignalsTest < Minitest::Test
  include Support::Servers

  parallelize_me! # they wait most of the time

  # /hold answers when the file "go" is there, /never never.
  APP = <<~'RUBY'
    run lambda { |env|
      hold_until("go") if env["PATH_INFO"] == "/hold"
      Thread.handle_interrupt(Object => :never) { sleep } if env["PATH_INFO"] == "/never"
      [200, {}, ["pid #{Process.pid}"]]
    }
  RUBY

  %w[TERM QUIT].each do |signal|
    define_method("test_#{signal}_ends_the_server_when_all_that_was_sent_is_answered") do
      server = start("workers 2")
      answers = Array.new(2) { ask_in_thread(server, "/hold") }
      wait_until_busy(server, 2)
      waiting = Array.new(5) { open_request(server, "/") }
      server.wait_for("monitor.stopping", reason: signal) { server.signal(signal) }
      server.write("go", "")

      assert_equal([200, 200], answers.map { |thread| thread.value.status })
      waiting.each { |socket| assert_match(/\AHTTP\S+ 200 /, socket.read) }
      assert_equal(0, server.wait_for_exit.exitstatus)
      assert_empty(complaints(server))
    end
  end

  # The monitor is held up where it matters: the worker serves already, and it does not know.
  def test_term_waits_for_the_request_of_a_worker_that_has_just_come_up
    server = start("workers 1\nafter_worker_ready { Process.kill(:STOP, Process.ppid) if File.exist?('hold_up') }")
    answers = [ask_in_thread(server, "/hold")]
    wait_until_busy(server, 1)
    server.write("hold_up", "")
    server.signal("TTIN")
    answers << ask_in_thread(server, "/hold")
    wait_until_busy(server, 2)
    %w[TERM CONT].each { |signal| server.signal(signal) }
    server.wait_past("monitor.stopping")
    server.write("go", "")

    assert_equal([200, 200], answers.map { |thread| thread.value.status })
    assert_equal(0, server.wait_for_exit.exitstatus)
    assert_empty(complaints(server))
  end

  def test_int_ends_the_server_quickly_but_a_short_request_is_finished
    server = start("workers 1")
    answer = ask_in_thread(server, "/hold")
    wait_until_busy(server, 1)
    server.wait_for("monitor.stopping", reason: "INT") { server.signal("INT") }
    server.write("go", "")

    assert_equal(200, answer.value.status)
    assert_equal(0, server.wait_for_exit.exitstatus)
  end

  [%w[TERM TERM], %w[TERM INT], %w[QUIT TERM], %w[INT INT]].each do |first, second|
    define_method("test_#{second}_after_#{first}_stops_at_once") do
      server = start("workers 1\ntimeout 60, grace: 60\nstop_timeout 60")
      socket = open_request(server, "/never")
      wait_until_busy(server, 1)
      server.wait_for("monitor.stopping") { server.signal(first) }
      server.wait_for("monitor.stopping", reason: second) { server.signal_again(second) }

      assert_equal(0, server.wait_for_exit(10).exitstatus)
      assert_equal("GET /never", server.events("worker.killed").first["request"])
    ensure
      socket&.close
    end
  end

  def test_usr2_reforks_now
    server = start("workers 2")
    before = server.workers.map(&:pid)
    server.refork

    assert_equal("USR2", server.events("refork.started").last["reason"])
    wait_until(message: "the old workers' end") { !server.workers.map(&:pid).intersect?(before) }
    assert_equal([1, 1], server.workers.map { |worker| worker.title[/gen (\d+)/, 1].to_i })
  end

  def test_usr1_without_an_access_log_says_that_it_loads_nothing
    server = start("workers 1")
    told = server.wait_for("signal.ignored") { server.signal("USR1") }

    assert_equal(%w[USR1 warn], told.values_at("name", "level"))
    assert_empty(server.events("reload.started"))
  end

  def test_usr2_is_refused_while_a_refork_is_on_its_way
    server = start("workers 1")
    answer = ask_in_thread(server, "/hold") # the only worker will become a mold after this request
    wait_until_busy(server, 1)
    server.wait_for("refork.started") { server.signal("USR2") }
    refused = server.wait_for("refork.refused") { server.signal("USR2") }
    server.write("go", "")

    assert_equal("USR2", refused["wanted"])
    assert_equal(200, answer.value.status)
    server.wait_past("refork.finished", generation: 1)
  end

  def test_ttin_and_ttou_change_the_number_of_workers
    server = start("workers 1")
    server.wait_for("worker.ready", slot: 1) { server.signal("TTIN") }
    server.wait_for("worker.ready", slot: 2) { server.signal("TTIN") }
    assert_equal(3, server.workers.size)

    [2, 1].each { |slot| server.wait_for("worker.exited", slot: slot, reason: "scaled down") { server.signal("TTOU") } }
    assert_equal(["pando worker 0 gen 0 idle"], server.workers.map(&:title))
    assert_empty(complaints(server))
  end

  def test_ttou_leaves_at_least_one_worker
    server = start("workers 1")
    server.signal("TTOU")
    server.refork # by then it has been seen
    scaled = server.wait_for("workers.scaled") { server.signal("TTIN") }

    assert_equal([1, 2], scaled.values_at("from", "to"))
    assert_equal(1, server.events("workers.scaled").size)
  end

  def test_ttou_lets_the_request_of_the_last_slot_finish
    server = start("workers 2")
    answers = Array.new(2) { ask_in_thread(server, "/hold") }
    wait_until_busy(server, 2)
    server.wait_for("worker.leaving", slot: 1) { server.signal("TTOU") }
    server.write("go", "")

    assert_equal([200, 200], answers.map { |thread| thread.value.status })
    server.wait_past("worker.exited", slot: 1)
  end

  %w[TERM QUIT].each do |signal|
    define_method("test_#{signal}_to_one_worker_replaces_it_after_its_request") do
      server = start("workers 1")
      answer = ask_in_thread(server, "/hold")
      wait_until_busy(server, 1)
      worker = server.workers.first.pid
      Process.kill(signal, worker)
      server.write("go", "")

      assert_equal("pid #{worker}", answer.value.body)
      assert_equal(signal, server.wait_past("worker.leaving", pid: worker)["reason"])
      server.wait_past("worker.exited", pid: worker)
      wait_until(message: "a new worker") { server.events("worker.ready").size == 2 }
      refute_equal(worker, server.workers.last.pid)
      assert_equal(200, server.get("/").status)
    end
  end

  def test_term_to_the_mold_makes_another_one
    server = start("workers 2")
    server.wait_for("generation.current", purpose: "heal") { Process.kill("TERM", server.mold.pid) }

    wait_until(message: -> { server.processes }) { server.mold&.title == "pando mold gen 1" }
    assert_equal(%w[0 0], server.workers.map { |worker| worker.title[/gen (\d+)/, 1] })
  end

  # A terminal sends it to the whole process group.
  def test_interrupt_from_a_terminal_is_the_monitors_alone
    server = start("workers 2", wrapper: ["setsid"])
    answer = ask_in_thread(server, "/hold")
    wait_until_busy(server, 1)
    server.wait_for("monitor.stopping", reason: "INT") { Process.kill("INT", -server.pid) }
    server.write("go", "")

    assert_equal(200, answer.value.status)
    assert_equal(0, server.wait_for_exit.exitstatus)
    assert_empty(complaints(server))
    refute_match(/Interrupt|SignalException/, server.output)
  end

  def test_interrupt_from_a_terminal_during_the_boot
    server = serve(app: "File.write('booting', '')\nsleep", wrapper: ["setsid"], ready: false)
    wait_until(message: "the boot") { File.exist?(File.join(server.folder, "booting")) }
    Process.kill("INT", -server.pid)

    assert_equal(0, server.wait_for_exit.exitstatus)
    refute_match(/Interrupt|SignalException/, server.output)
  end

  # Before the mold has got as far as to have handlers of its own.
  def test_interrupt_from_a_terminal_at_the_very_start
    server = serve(wrapper: ["setsid"], ready: false)
    server.wait_past("mold.booting")
    Process.kill("INT", -server.pid)

    assert_equal(0, server.wait_for_exit.exitstatus)
  end

  def test_a_terminal_that_hangs_up_ends_nobody
    master, slave = PTY.open
    server = start("workers 2", wrapper: ["sh", "-c", %(exec setsid --ctty "$@" <#{slave.path}), "sh"])
    before = server.tree.children.map(&:pid)
    [slave, master].each(&:close) # the kernel sends HUP to all of them
    server.refork # by then they have seen it

    assert_empty(complaints(server))
    assert_includes(before, server.events("refork.started").last["source"])
    assert_empty(server.events("reload.started"))
    assert_equal(2, server.wait_for("reload.finished") { server.signal("HUP") }["generation"], "an operator still can")
    assert_predicate(server.stop, :success?)
  end

  private

  def start(config, **options)
    serve(app: APP, config: "refork :manual\n#{config}", **options)
  end

  def open_request(server, path)
    server.connect.tap { |socket| socket.write("GET #{path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n") }
  end

  def ask_in_thread(server, path)
    Thread.new { server.get(path) }.tap { |thread| thread.report_on_exception = false }
  end

  def wait_until_busy(server, count)
    wait_until(message: -> { "#{count} busy workers: #{server.workers}" }) do
      server.workers.count { |worker| worker.title.end_with?("busy") } == count
    end
  end

  def complaints(server) = server.events.select { |event| event["level"] == "error" }
end
