# frozen_string_literal: true

require "test_helper"
require "support/servers"

# A server that cannot start says why, once and last, and with the right status.
class FailedBootTest < Minitest::Test
  include Support::Servers

  def test_an_app_that_raises
    status, output = boot(app: <<~RUBY)
      def connect = raise(ArgumentError, "no database")
      connect
      run ->(_env) { [200, {}, []] }
    RUBY

    assert_equal(1, status)
    assert_told_last(output, /no database \(ArgumentError\)/, /config\.ru:1:in .*connect/, /config\.ru:2:in/)
  end

  def test_a_cause_is_told_too
    status, output = boot(app: <<~RUBY)
      begin
        raise KeyError, "the root of it"
      rescue KeyError
        raise "cannot boot"
      end
    RUBY

    assert_equal(1, status)
    assert_told_last(output, /cannot boot \(RuntimeError\)/, /config\.ru:4:in/, /caused by: the root of it/)
  end

  def test_an_app_that_is_no_ruby
    status, output = boot(app: "run ->(env { 1 }\n")

    assert_equal(1, status)
    assert_match(/SyntaxError/, last_words(output))
    assert_match(/config\.ru:1/, last_words(output))
  end

  def test_an_app_that_exits
    ["exit 0", "exit 3", "exit!(0)"].each do |code|
      status, output = boot(app: "#{code}\nrun ->(_env) { [200, {}, []] }")

      assert_equal(1, status, code)
      assert_match(/could not start.*\S/, last_words(output))
    end
  end

  def test_an_app_that_aborts_says_its_word
    status, output = boot(app: "abort 'SECRET_KEY_BASE is missing'")

    assert_equal(1, status)
    assert_match(/SECRET_KEY_BASE is missing/, last_words(output))
  end

  def test_an_app_that_crashes
    status, output = boot(app: "Process.kill(:KILL, Process.pid)\nsleep")

    assert_equal(1, status)
    assert_match(/signal KILL/, last_words(output))
  end

  def test_an_app_that_hangs
    status, output = boot(app: "sleep", config: "boot_timeout 1")

    assert_equal(1, status)
    assert_match(/not ready in time/, last_words(output))
  end

  def test_hooks_that_raise_are_named
    %w[after_mold_fork before_fork after_worker_fork].each do |hook|
      status, output = boot(config: "workers 2\n#{hook} { |*| raise 'not today' }")

      assert_equal(1, status, hook)
      assert_match(/#{hook} hook at .*pando\.rb:3 raised RuntimeError: not today/, last_words(output))
    end
  end

  def test_a_first_worker_that_crashes
    status, output = boot(config: "workers 2\nafter_worker_fork { |*| Process.kill(:KILL, Process.pid) }")

    assert_equal(1, status)
    assert_match(/signal KILL/, last_words(output))
  end

  def test_a_config_file_that_changed_its_mind
    status, output = boot(config: "raise 'the mold must not read this' if Process.ppid != #{Process.pid}")

    assert_equal(1, status)
    assert_match(/the mold must not read this/, last_words(output))
  end

  def test_an_address_in_use
    server = serve
    status, output = boot(listen: "unix:#{server.socket_path}")

    assert_equal(1, status)
    assert_match(/\Apando: cannot listen on unix:.*another process listens there/, output.lines.last)
    assert_equal(200, server.get("/").status, "the first server keeps its address")
  end

  def test_a_port_in_use
    listener = TCPServer.new("127.0.0.1", 0)
    address = "127.0.0.1:#{listener.addr[1]}"
    status, output = boot(listen: address)

    assert_equal(1, status)
    assert_match(/\Apando: cannot listen on #{address}: another process listens there/, output.lines.last)
  ensure
    listener&.close
  end

  def test_an_address_that_is_not_ours
    status, output = boot(listen: "192.0.2.1:8080")

    assert_equal(1, status)
    assert_match(/\Apando: cannot listen on 192\.0\.2\.1:8080: /, output.lines.last)
  end

  def test_a_stale_socket_is_no_obstacle
    folder = Dir.mktmpdir("pando-test")
    path = File.join(folder, "stale.sock")
    UNIXServer.new(path).close
    server = serve(listen: "unix:#{path}")

    assert_predicate(server.stop, :success?)
    refute_path_exists(path)
  ensure
    FileUtils.rm_rf(folder)
  end

  def test_wrong_usage
    { "--wrokers" => /--workers/, "--timeout" => /needs a value/, "nothere.ru" => /nothere\.ru/ }.each do |flag, words|
      status, output = boot(arguments: [flag])

      assert_equal(2, status, flag)
      assert_match(words, output)
    end
  end

  def test_wrong_settings
    status, output = boot(config: "wrokers 2")

    assert_equal(2, status)
    assert_match(/pando\.rb:2.*workers/m, output)
  end

  # With plain text logs: what people see.
  def test_people_see_the_backtrace_once_and_last
    status, output = boot(app: "raise 'no database'", arguments: %w[--log-format text])

    assert_equal(1, status)
    assert_told_last(output, /no database \(RuntimeError\)/, /config\.ru:1:in/)
  end

  # The worker's own event has it.
  def test_people_see_the_backtrace_of_a_first_worker_once
    config = "workers 1\nafter_worker_fork { |*| raise 'not today' }"
    status, output = boot(config: config, arguments: %w[--log-format text])

    assert_equal(1, status)
    assert_equal(1, output.scan("pando.rb:3:in").size, output)
    assert_match(/not today/, last_words(output))
  end

  # What follows from it is no other error, but the end.
  { "an application" => [{ app: "raise 'not today'" }, "mold.failed"],
    "a first worker" => [{ config: "workers 1\nafter_worker_fork { |*| raise 'not today' }" }, "worker.failed"] }
    .each do |culprit, (options, name)|
      define_method(:"test_the_fault_of_#{culprit.tr(" ", "_")}_is_one_error") do
        server = serve(ready: false, **options)
        server.wait_for_exit
        errors = server.complaints

        assert_equal([name, "monitor.stopping"], errors.map { |event| event["event"] })
        assert_match(/not today/, errors.first["reason"])
        assert_match(/not today/, last_words(server.output))
      end
    end

  private

  def boot(**options)
    server = serve(ready: false, **options)
    status = server.wait_for_exit

    assert_empty(server.processes)
    [status.exitstatus, server.output]
  end

  def last_words(output)
    output[/^pando could not start.*\z/m].tap { |words| assert(words, output) }
  end

  # @param lines [Array<Regexp>] of the backtrace, in order
  def assert_told_last(output, message, *lines)
    words = last_words(output)

    assert_match(message, words.lines.first)
    assert_equal(lines, lines.sort_by { |line| words.index(line) || flunk("#{line.inspect} is not in\n#{words}") })
    lines.each { |line| assert_equal(1, output.scan(line).size, "#{line.inspect} is told once: #{output}") }
  end
end
