# frozen_string_literal: true

require "test_helper"
require "socket"
require "support/suite_run"

# Strict mode, on specs that a gem brings: each fault that is planted among them is found, and none without.
class ReforkStrictTest < Minitest::Test
  FOLDER = File.join(Support::SuiteRun::FOLDER, "plants")
  SPECS = %w[spec/change_spec.rb spec/hunk_spec.rb].freeze # of diff-lcs
  FAILED = /^ *\d+ examples, (?!0 failures$).*/

  def self.gem_folder = @gem_folder ||= Support::SuiteRun.gem("diff-lcs")

  def setup
    @echo = TCPServer.new("127.0.0.1", 0)
    @server = Thread.new { loop { serve(@echo.accept) } }
  end

  def teardown
    @server.kill.join
    @echo.close
  end

  def test_a_clean_app_is_clean
    run = suite("clean", env: { "CONFIG" => "pando.rb" })

    assert_predicate run.status, :success?, run
    assert_match(/^\d+ examples, 0 failures$/, run.output)
    assert_empty run.errors
  end

  def test_a_shared_socket = assert_found("shared_socket", /A socket from before the refork/, "CONNECTION.puts")
  def test_a_shared_position = assert_found("shared_position", /The position of .*shared_position\.rb/, "FILE.sysread")
  def test_a_lock_held = assert_found("lock_held", /A background thread held a lock/, "      sleep")
  def test_a_file_deleted_at_exit = assert_found("file_deleted", /A second process deleted .*planted-/, "at_exit")

  def test_files_that_a_process_made_itself_are_its_own_to_delete
    run = Support::SuiteRun.minitest("own_files_test.rb", every: 20, strict: true)

    assert_predicate run.status, :success?, run
    assert_empty run.errors
  end

  def test_files_that_both_processes_make_belong_to_the_one_that_lives
    run = Support::SuiteRun.minitest("shared_files_test.rb", every: 20, strict: true)

    assert_equal 1, run.status.exitstatus, run
    %w[remade written].each { |name| assert_match(/A second process deleted .*#{name}-/, run.output) }
  end

  def test_a_lost_thread
    run = assert_found("lost_thread", /Planted works \(0\)/, nil)

    assert_includes run.errors, "A thread was running before a refork"
    assert_includes run.errors, "#{FOLDER}/app/lost_thread.rb:#{line("lost_thread", "Thread.new")}"
  end

  def test_a_cached_pid
    leave_small_pids
    run = assert_found("pid_cached", /expected: "worker-\d+"/, nil)

    %w[PID NAME].each do |name|
      place = "#{FOLDER}/app/pid_cached.rb:#{line("pid_cached", "#{name} =")}"

      assert_match(/Planted::#{name} still holds the pid .*\(#{place}\)/, run.errors)
    end
  end

  def test_a_copied_generator
    run = suite("random_copied")

    assert_predicate run.status, :success?, "a warning"
    assert_includes run.errors, "#{FOLDER}/app/random_copied.rb:#{line("random_copied", "Random.new")}"
    run = suite("random_copied", env: { "PANDO_REFORK_FAIL_ON" => "warning" })

    assert_equal 1, run.status.exitstatus, run
  end

  def test_what_the_settings_keep_is_no_fault
    run = suite("shared_position", env: { "CONFIG" => "kept.rb" })

    assert_predicate run.status, :success?, run
    assert_empty run.errors
  end

  private

  # In a string a number below 1000 may be any number, so none is taken for a pid (Strict::Pids). After the last pid the
  # kernel begins anew with small ones: the run is to have neither of both.
  def leave_small_pids
    most = File.read("/proc/sys/kernel/pid_max").to_i - 2000
    pid = nil
    Process.wait(pid = fork { exit! }) until pid&.between?(1000, most)
  end

  # The app does well as long as nobody forks, and is found out when somebody does.
  def assert_found(plant, pattern, code)
    assert_predicate suite(plant, every: 0).status, :success?
    run = suite(plant)

    assert_equal 1, run.status.exitstatus, run
    assert_match pattern, run.output
    assert_includes run.output, "app/#{plant}.rb:#{line(plant, code)}" if code
    run
  end

  def suite(plant, every: 16, env: {})
    env = { "PLANT" => plant, "ECHO_PORT" => @echo.addr[1].to_s }.merge(env)
    planted = File.join(FOLDER, "spec/planted_spec.rb")
    Support::SuiteRun.rspec(*SPECS, planted, "-r", "pando/rspec", "--order", "defined",
                            every: every, strict: true, dir: self.class.gem_folder, env: env)
  end

  def line(plant, code)
    File.foreach(File.join(FOLDER, "app", "#{plant}.rb")).find_index { |text| text.include?(code) } + 1
  end

  def serve(client)
    Thread.new do
      while (line = client.gets)
        client.write(line)
      end
      client.close
    end
  end
end
