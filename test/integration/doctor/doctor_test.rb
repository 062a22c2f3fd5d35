# frozen_string_literal: true

require "test_helper"
require "support/doctor_run"
require "support/proc_tree"

# `pando doctor` from outside: what it is asked, what it says, how it ends.
class DoctorTest < Minitest::Test
  include Support::DoctorCase

  parallelize_me!

  FAULTY = "DICE = Random.new\nrun ->(_env) { [200, {}, [DICE.rand.to_s]] }"

  READS = "WORDS = File.open('words').tap { |file| file.sysread(1) }\n" \
          "run ->(_env) { [200, {}, [WORDS.sysread(1)]] }\n"

  # Two requests at once would overwrite it. Without threads it is no fault.
  def test_state_that_requests_share
    app = "class Greedy\n  def initialize(app) = @app = app\n  " \
          "def call(env) = (@env = env) && @app.call(env)\nend\nuse Greedy\n#{CLEAN}"
    fault = ["shared_state", "config.ru:3"]
    places = { "" => [], "threads 2" => [fault], "pool :slow, paths: ['/slow'], threads: 2" => [fault] }
    places.each do |config, expected|
      File.write(File.join(@folder, "pando.rb"), config)
      run = doctor(app, "-c", "pando.rb", "--format", "json")

      assert_equal(expected, run.faults, run.out)
    end
  end

  def test_a_clean_application
    run = doctor(CLEAN)

    assert_equal(0, run.status, run.err)
    assert_match(/^OK: 0 errors, 0 warnings/, run.out)
    assert_match(/generation 1, served +worker 1 gen 1 +\d/, run.out)
    assert_match(/pidfd: yes/, run.out)
  end

  def test_a_baseline_goes_from_one_run_to_the_next
    first = doctor(FAULTY, "--write-baseline", "known.json")
    second = doctor("# a line more\n#{FAULTY}", "--baseline", "known.json")
    third = doctor("#{FAULTY}\nTHREAD = Thread.new { sleep }", "--baseline", "known.json")

    assert_equal([0, 0, 1], [first, second, third].map(&:status))
    assert_includes(second.out, "error (known): a Random object")
    assert_match(/^error: No forked process has the thread/, third.out)
  end

  # As Capistrano deploys; Rails finds its own folder without the link.
  def test_an_application_reached_through_a_link_is_the_users_own
    write("release/lib/thing.rb", "# Draws from a copy.\nDICE = Random.new\n")
    write("release/config.ru", "$LOAD_PATH.unshift File.realpath('lib', __dir__)\nrequire 'thing'\n" \
                               "run ->(_env) { [200, {}, [DICE.rand.to_s]] }")
    File.symlink("release", File.join(@folder, "current"))
    run = Support::DoctorRun.new("-C", "current", "--format", "json", folder: @folder)

    assert_equal([1, [["random_copied", "lib/thing.rb:2"]]], [run.status, run.errors], run.err)
  end

  def test_an_application_that_does_not_boot_is_not_examined
    run = doctor("raise 'no database'")

    assert_equal(2, run.status)
    assert_match(/could not be examined: no database/, run.err)
    assert_includes(run.err, "config.ru:1")
    assert_empty(run.out)
  end

  def test_wrong_usage
    write("config.ru", CLEAN)
    [%w[--format xml], %w[--reforks many], %w[--patience 0], %w[--requests none], %w[--baseline none], %w[--frobnicate],
     %w[none.ru]].each do |arguments|
      run = Support::DoctorRun.new(*arguments, folder: @folder)
      assert_equal(2, run.status, arguments.inspect)
      assert_match(/\Apando: .*#{Regexp.escape(arguments.first)}/, run.err)
    end
  end

  def test_hooks_and_settings_of_the_config_file_hold
    write("config/pando.rb", <<~RUBY)
      workers 7
      listen 80
      before_fork { DICE.replace([]) }
      after_worker_fork { DICE.replace([Random.new]) }
    RUBY
    run = doctor("DICE = [Random.new]\nrun ->(_env) { [200, {}, [DICE.first.rand.to_s]] }")

    assert_equal(0, run.status, run.out)
  end

  # The doctor's own server has no reactor.
  def test_settings_of_the_reactor_do_no_harm
    write("config/pando.rb", <<~RUBY)
      health "/up", live: "/live"
      threads 4
      pool :reports, paths: ["/reports"], threads: 2
    RUBY
    run = doctor(CLEAN)

    assert_equal([0, ""], [run.status, run.err], run.out)
  end

  def test_what_the_settings_allow_is_not_found
    write("config/pando.rb", 'keep_io "*/words"')
    write("words", "many of them" * 100)

    assert_equal(0, doctor(READS).status)
  end

  def test_what_the_settings_refuse_is_found_all_the_same
    write("config/pando.rb", "fork_safety files: :refuse, native_threads: :refuse")
    write("words", "many of them")
    run = doctor("#{READS}THREAD = Thread.new { sleep }", "--format", "json")

    assert_equal([%w[lost_thread config.ru:3], %w[shared_position config.ru:1]], run.faults, run.err)
  end

  def test_a_lost_thread_is_an_error_in_the_words_of_the_server
    run = doctor("THREAD = Thread.new { sleep }\nrun ->(_) { [200, {}, []] }", "--format", "json")
    found = run.report["findings"].first

    assert_equal([1, "lost_thread", "error"], [run.status, *found.values_at("kind", "severity")], run.err)
    assert_match(/\ANo forked process has the thread of the application that config\.ru:1 starts: /, found["message"])
    assert_match(/fork_safety threads: { allow: \["config\.ru:1"\] }/, found["advice"])
  end

  def test_a_thread_that_the_settings_allow_is_none
    write("config/pando.rb", 'fork_safety threads: { allow: ["config.ru"] }')
    run = doctor("THREAD = Thread.new { sleep }\nrun ->(_) { [200, {}, []] }", "--format", "json")

    assert_equal([0, []], [run.status, run.faults], run.err)
  end

  def test_any_path_in_any_locale
    write("background.rb", "THREAD = Thread.new { sleep }")
    run = doctor("require_relative 'background'\n#{FAULTY}", "--format", "json", env: { "LC_ALL" => "C" })

    assert_equal([%w[lost_thread background.rb:1], %w[random_copied config.ru:2]], run.faults, run.err)
    assert_equal(@folder, run.report["application"]["directory"])
  end

  # What the doctor serves in a child of a worker fails, and only that.
  def test_a_check_that_could_not_be_done_is_no_pass
    write("config/pando.rb", "after_worker_fork { $worker = Process.pid }")
    app = "run ->(_env) { $worker == Process.pid ? [200, {}, []] : raise('in a child') }"
    run = doctor(app, "--format", "json")

    assert_equal(3, run.status, run.err)
    assert_equal(["lazy state"], run.report["undone"].map { |one| one["check"] })
    assert_match(/in a child/, run.report["undone"][0]["reason"])
    assert_match(/^INCOMPLETE: .*; could not be done: lazy state\n\z/, doctor(app).out)
  end

  def test_one_of_two_checks_of_a_worker_fails
    write("config/pando.rb", "threads 2")
    run = doctor(<<~RUBY, "--format", "json")
      run(lambda do |_env|
        raise "on another thread" unless Thread.current == Thread.main

        $memo ||= Array.new(10_000) { |number| number.to_s }
        [200, {}, []]
      end)
    RUBY

    assert_match(/on another thread/, run.report["undone"][0]["reason"])
    assert_includes(run.report["findings"].map { |one| one.values_at("kind", "location") },
                    ["lazy_memory", "config.ru:4"])
    refute_nil(run.report["lazy_state"])
  end

  def test_routes_of_what_is_no_rails_application
    run = doctor(CLEAN, "--requests", "routes")

    assert_equal([2, ""], [run.status, run.out])
    assert_match(/could not be examined: --requests routes: no Rails route/, run.err)
  end

  def test_a_page
    run = doctor(FAULTY, "--format", "html", "--output", "doctor.html")
    page = File.read(File.join(@folder, "doctor.html"))

    assert_equal([1, ""], [run.status, run.out])
    assert_includes(page, "<code>config.ru:1</code>")
    assert_equal(3, page.scan("<svg ").size, "the tree, the memory, the lazy state; nothing is shared")
  end

  def test_a_hook_that_fails_after_the_refork_is_named
    write("config/pando.rb", "after_mold_fork { |_server, mold| raise 'not again' if mold.generation == 1 }")
    run = doctor(CLEAN, "--format", "json")
    missing = run.report["findings"].find { |one| one["kind"] == "refork_failed" }

    assert_equal(1, run.status)
    assert_includes(missing["message"], "not again")
  end

  def test_what_fails_only_after_a_refork_is_an_error
    write("config/pando.rb", 'after_mold_fork { |_server, mold| ENV["AGAIN"] = "1" if mold.generation == 1 }')
    run = doctor('run ->(_env) { [ENV["AGAIN"] ? 500 : 200, {}, []] }', "--format", "json")

    assert_includes(run.faults, ["request_failed", nil])
  end

  def test_what_the_application_raised_is_told_with_its_line
    run = doctor("run(lambda do |_env|\n  raise 'no more'\nend)", "--format", "json")

    assert_equal([["request_failed", "config.ru:2"]], run.faults)
    assert_includes(run.report["findings"].first["message"], "RuntimeError: no more")
  end

  # Ruby's own word for it comes at once where the doctor would have to wait.
  def test_a_request_that_waits_for_what_no_thread_will_do_is_stuck
    run = doctor("run(lambda do |_env|\n  Queue.new.pop\nend)", "--format", "json", "--patience", "8")

    assert_equal([["request_stuck", "config.ru:2"]], run.faults)
  end

  def test_a_request_that_sleeps_before_any_refork_is_slow_and_no_fault
    run = doctor("run(lambda do |_env|\n  sleep 60\nend)", "--format", "json", "--patience", "1")
    note = run.report["findings"].find { |one| one["kind"] == "request_stuck" }

    assert_empty(run.faults)
    assert_equal(["note", "config.ru:2"], note.values_at("severity", "location"))
    assert_includes(note["message"], "worker 0 of generation 0 was slow: it slept at config.ru:2")
    assert_includes(note["advice"], "--patience")
  end

  def test_a_request_that_sleeps_after_a_refork_only_is_an_error
    write("config/pando.rb", 'after_mold_fork { |_server, mold| ENV["SLOW"] = "1" if mold.generation == 1 }')
    run = doctor("run(lambda do |_env|\n  sleep 60 if ENV['SLOW']\n  [200, {}, []]\nend)", "--format", "json",
                 "--patience", "3")
    stuck = run.report["findings"].find { |one| one["kind"] == "request_stuck" }

    assert_equal("error", stuck["severity"])
    assert_includes(stuck["message"], "generation 1 was slow: it slept at config.ru:2")
  end

  def test_a_config_file_that_was_broken_meanwhile
    write("config/pando.rb", 'no_such_setting 1 if $PROGRAM_NAME.include?("subject")')
    run = doctor(CLEAN)

    assert_equal([2, "", "pando: the application could not be examined: config/pando.rb:1: unknown setting " \
                         "no_such_setting.\n"], [run.status, run.out, run.err])
  end

  # The user's own server is not disturbed, and does not disturb.
  def test_the_pidfile_is_left_to_the_server
    write("config/pando.rb", "pidfile 'server.pid'")
    server = Process.spawn("sleep", "1000", chdir: @folder)
    write("server.pid", server.to_s)
    run = doctor(CLEAN)

    assert_equal([0, server.to_s], [run.status, File.read(File.join(@folder, "server.pid"))], run.err)
    File.unlink(File.join(@folder, "server.pid"))
    run = doctor("File.write('seen', Dir.children('.'))\n#{CLEAN}")
    assert_equal(0, run.status, run.err)
    refute_includes(File.read(File.join(@folder, "seen")), "server.pid")
  ensure
    Process.kill("KILL", server)
    Process.wait(server)
  end

  def test_a_server_that_cannot_start_says_why
    write("config/pando.rb", 'Process.setrlimit(:FSIZE, 1000) if $PROGRAM_NAME.include?("subject")')
    run = doctor(CLEAN)

    assert_equal([2, ""], [run.status, run.out])
    assert_match(/\Apando: the application could not be examined: a file may have 1000 bytes here .*\n\z/, run.err)
  end

  def test_a_server_that_ends_without_a_word
    write("config/pando.rb", 'on("monitor.listening") { exit!(3) }')
    run = doctor(CLEAN)

    assert_equal([2, "", "pando: the application could not be examined: its server ended: status 3\n"],
                 [run.status, run.out, run.err])
  end

  def test_nothing_is_left_behind
    Dir.mktmpdir do |temporary|
      doctor("HELPER = spawn('sleep 1000')\n#{CLEAN}", env: { "TMPDIR" => temporary })

      assert_empty(Dir.children(temporary))
      assert_empty(Support::ProcTree.in_folder(@folder))
    end
  end
end
