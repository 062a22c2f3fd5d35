# frozen_string_literal: true

require "test_helper"
require "json"
require "open3"
require "support/c_program"
require "support/servers"

# Requests that end their workers: each costs one of them, nobody else is given it, and a path that goes on is named.
class PoisonTest < Minitest::Test
  include Support::Servers

  parallelize_me! # they wait most of the time

  APP = <<~'RUBY'
    run(lambda do |env|
      path = env["PATH_INFO"]
      File.write("begun", "#{path} #{env["pando.retry"]}\n", mode: "a")
      case path
      when %r{\A/exit!(\d)} then exit!($1.to_i)
      when "/abort" then abort
      when "/exit" then exit
      when "/frail" then Process.kill(:KILL, Process.pid) unless env["pando.retry"]
      when "/up" then exit!(1) if env["HTTP_X_DEADLY"]
      when %r{\A/signal/(\w+)} then Process.kill($1, Process.pid) && sleep
      end
      [200, {}, [Process.pid.to_s]]
    end)
  RUBY

  # @return [Array<String>] each time that an application was given a request for this path
  def begun(server, path) = File.readlines(File.join(server.folder, "begun"), chomp: true).grep(/\A#{path} /)

  def test_a_get_whose_worker_exited_is_not_given_to_another
    server = serve(app: APP, config: "workers 2")
    statuses = %w[/exit!0 /exit!1 /abort /exit].to_h { |path| [path, server.get(path).status] }

    assert_equal({ "/exit!0" => 502, "/exit!1" => 502, "/abort" => 500, "/exit" => 500 }, statuses)
    statuses.each_key { |path| assert_equal 1, begun(server, path).size, path }
    assert_equal 200, server.get("/").status
    assert_empty server.events("requests.retried")
  end

  def test_after_a_kill_a_get_is_tried_again_and_then_not_for_a_minute
    server = serve(app: APP, config: "workers 2")

    assert_equal 200, server.get("/frail").status
    assert_equal 502, server.get("/frail").status
    assert_equal ["/frail ", "/frail true", "/frail "], begun(server, "/frail")
  end

  def test_who_killed_one_worker_says_nothing_about_another_path
    server = serve(app: APP, config: "workers 2")
    2.times { server.get("/signal/SEGV") }

    assert_equal 200, server.get("/frail").status
  end

  # Ruby's report waits until somebody reads it, which is never.
  def test_a_worker_that_crashes_is_replaced_before_its_report_is_written
    [true, false].each do |reactor|
      server = serve(app: <<~RUBY, config: "workers 1\nreactor #{reactor}\ntimeout 5")
        require "io/nonblock"
        run(lambda do |env|
          next [200, {}, [Process.pid.to_s]] unless env["PATH_INFO"] == "/crash"

          reader, writer = IO.pipe
          nil while writer.write_nonblock("x" * 4096, exception: false) != :wait_writable
          writer.nonblock = false
          STDERR.reopen(writer)
          Process.kill(:SEGV, Process.pid)
          reader.read
        end)
      RUBY
      pid = server.get("/").body
      crashing = server.connect
      crashing.write("GET /crash HTTP/1.1\r\nHost: a\r\n\r\n")
      server.wait_past("worker.leaving", pid: pid.to_i, reason: "it crashes")

      refute_equal pid, server.get("/").body
      assert_path_exists "/proc/#{pid}"
      Process.kill(:KILL, pid.to_i)
      assert_equal pid.to_i, server.wait_past("worker.lost")["pid"]
    ensure
      crashing&.close
    end
  end

  # As WebAssembly and Java runtimes do, from the boot on or from their first use.
  def test_a_fault_that_a_library_repairs_is_no_crash
    environment = { "REPAIR" => Support::CProgram.library("repaired_fault") }
    %w[boot first_use].each do |installed|
      server = serve(app: <<~RUBY, config: "workers 1", env: environment)
        require "fiddle"
        library = Fiddle.dlopen(ENV.fetch("REPAIR"))
        install, fault = %w[install_repair fault].map { |name| Fiddle::Function.new(library[name], [], Fiddle::TYPE_INT) }
        installed = install.call if "#{installed}" == "boot"
        nice = -> { Process.getpriority(Process::PRIO_PROCESS, 0) }
        run(lambda do |env|
          Process.kill(:SEGV, Process.pid) && sleep if env["PATH_INFO"] == "/crash"
          installed ||= install.call
          [200, {}, [[Process.pid, fault.call, nice.call].join(" ")]]
        end)
      RUBY
      pid, repaired, nice = server.get("/").body.split
      assert_equal ["1", Process.getpriority(Process::PRIO_PROCESS, 0).to_s], [repaired, nice]
      assert_equal "#{pid} 2 #{nice}", server.get("/").body
      server.wait_for("worker.leaving", pid: pid.to_i, reason: "it crashes") { die(server, "/crash") }
      assert_equal 1, server.events("worker.leaving").size
    end
  end

  def test_a_path_that_ends_worker_after_worker_is_named
    [true, false].each do |reactor|
      server = serve(app: APP, config: "workers 2\nreactor #{reactor}\npoison deaths: 4")
      3.times { die(server, "/exit!1?token=secret") }
      die(server, "/signal/SEGV")
      event = server.wait_for("request.poison") { die(server, "/exit!1") }

      assert_equal({ "request" => "GET /exit!1", "count" => 4, "within" => 60.0, "reason" => "status 1 (4)" },
                   event.slice("request", "count", "within", "reason", "refused"))
      assert_equal 200, server.get("/").status
      server.kill
    end
  end

  def test_what_an_exit_of_the_application_ends_counts_too
    server = serve(app: APP, config: "workers 2\npoison deaths: 2")
    server.get("/exit")
    event = server.wait_for("request.poison") { server.get("/exit") }

    assert_equal ["GET /exit", "status 0 (2)"], event.values_at("request", "reason")
    assert_equal "GET /exit", server.wait_past("worker.lost")["request"]
  end

  def test_workers_refuse_it_for_a_while_if_the_settings_say_so
    [true, false].each do |reactor|
      server = serve(app: APP, config: "workers 2\nreactor #{reactor}\npoison deaths: 2, refuse: 300\n" \
                                       "control \"control.sock\"")
      event = server.wait_for("request.poison") { 2.times { die(server, "/exit!1%C3%A4?a=b") } }
      answers = Array.new(10) { server.get("/exit!1%C3%A4?c=d") }

      assert_equal 300.0, event["refused"]
      assert_equal [503], answers.map(&:status).uniq
      assert_includes 280..300, answers.first.headers["retry-after"].to_i
      assert_equal 2, begun(server, "/exit!1%C3%A4").size
      assert_equal(["GET /exit!1%C3%A4"], status(server)["refused_paths"].map { |one| one["request"] })
      assert_equal 1, status(server)["counts"]["request_poison"]
      assert_equal 200, server.get("/").status
      server.kill
    end
  end

  # Only the method and the path count.
  def test_a_worker_may_ask_itself_for_what_it_refuses_to_others
    server = serve(app: APP, config: %(workers 2\nself_test "GET /up"\npoison deaths: 1, refuse: 300))
    server.wait_for("worker.ready") { server.get("/up", "X-Deadly" => "1") }

    assert_equal [503, 200], [server.get("/up").status, server.get("/").status]
    assert_empty server.events("worker.failed")
  end

  private

  def status(server)
    socket = File.join(server.folder, "control.sock")
    output, = Open3.capture2(*Support::Checkout.pando("status", "--format", "json", "--control", socket))
    JSON.parse(output)
  end

  # In direct mode nothing answers for a dead worker.
  def die(server, path)
    server.get(path)
  rescue StandardError
    nil
  end
end
