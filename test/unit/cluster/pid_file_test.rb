# frozen_string_literal: true

require "test_helper"
require "tmpdir"
require "pando/cluster/monitor"
require "support/in_child"

class ClusterPidFileTest < Minitest::Test
  include Support::InChild

  PidFile = Pando::Cluster::PidFile

  def setup
    @folder = Dir.mktmpdir("pando-pid")
    @path = File.join(@folder, "server.pid")
  end

  def teardown
    FileUtils.rm_rf(@folder)
  end

  def test_it_holds_our_pid_until_it_is_released
    file = PidFile.new(@path).claim

    assert_equal "#{Process.pid}\n", File.read(@path)
    assert_equal ["server.pid"], Dir.children(@folder)
    file.release

    refute_path_exists @path
  end

  def test_without_a_path_there_is_no_file
    PidFile.new(nil).claim.release

    assert_empty Dir.children(@folder)
  end

  def test_the_file_of_a_dead_process_is_replaced
    File.write(@path, Process.spawn("true").tap { |pid| Process.wait(pid) })

    assert_equal "#{Process.pid}\n", PidFile.new(@path).claim && File.read(@path)
  end

  # In a container the pid of a killed server is soon another program's.
  def test_the_file_that_names_a_server_elsewhere_is_replaced
    within_server("/") do |pid|
      File.write(@path, pid)

      assert_predicate self, :claimed?
    end
  end

  # A command of the application, an editor or the like.
  def test_the_file_that_names_another_program_in_this_folder_is_replaced
    within_sleeper(Dir.pwd) do |pid|
      File.write(@path, pid)

      assert_predicate self, :claimed?
    end
  end

  # Which is not to be examined, but for its name.
  def test_the_file_that_names_another_users_program_is_replaced
    within_sleeper(Dir.pwd) do |pid|
      File.write(@path, pid)
      outcome = as_another_user { [error_of { File.readlink("/proc/#{pid}/cwd") }, claimed?] }

      assert_equal ["Errno::EACCES", true], outcome
    end
  end

  def test_another_users_server_is_refused
    within_server(Dir.pwd) do |pid|
      File.write(@path, pid)

      assert_equal("Pando::BootError", as_another_user { error_of { PidFile.new(@path).claim } })
    end
  end

  # Such as the shell of a container that starts the server: it may have the pid of the server of before.
  def test_the_file_that_names_an_ancestor_is_replaced
    File.write(@path, Process.pid)
    child = in_child { claimed? }
    File.write(@path, Process.pid)
    grandchild = in_child { in_child { claimed? } }

    assert_equal [true, true], [child, grandchild]
  end

  # A request or job may start a server.
  def test_the_file_of_a_server_that_is_an_ancestor_is_its_own
    error = in_child do
      Process.setproctitle(Pando::Cluster::Monitor::TITLE)
      File.write(@path, Process.pid)
      in_child { error_of { PidFile.new(@path).claim } }
    end

    assert_equal "Pando::BootError", error
  end

  def test_a_second_server_of_this_folder_is_refused
    within_server(Dir.pwd) do |pid|
      File.write(@path, pid)
      error = assert_raises(Pando::BootError) { PidFile.new(@path).claim }

      assert_equal "a server is already running (pid #{pid}, file #{@path}): stop it, or choose another pidfile",
                   error.message
      assert_equal pid.to_s, File.read(@path)
    end
  end

  def test_to_look_for_another_server_writes_nothing
    file = PidFile.new(@path)
    file.refuse_second_server
    PidFile.new(nil).refuse_second_server

    assert_empty Dir.children(@folder)
    within_server(Dir.pwd) do |pid|
      File.write(@path, pid)
      assert_raises(Pando::BootError) { file.refuse_second_server }
      file.release

      assert_equal pid.to_s, File.read(@path)
    end
  end

  def test_a_file_that_another_process_has_written_since_is_left_alone
    file = PidFile.new(@path).claim
    File.write(@path, "1\n")
    file.release

    assert_equal "1\n", File.read(@path)
  end

  def test_a_file_that_was_removed_is_written_again
    file = PidFile.new(@path).claim
    File.unlink(@path)
    file.restore

    assert_equal "#{Process.pid}\n", File.read(@path)
    file.release

    refute_path_exists @path
  end

  def test_it_is_restored_where_a_link_leads_now
    %w[one two].each { |name| Dir.mkdir(File.join(@folder, name)) }
    file = PidFile.new(current("one")).claim
    File.write(File.join(@folder, "two/server.pid"), Process.spawn("true").tap { |pid| Process.wait(pid) })
    current("two")
    file.restore

    assert_equal "#{Process.pid}\n", File.read(File.join(@folder, "two/server.pid"))
    refute_path_exists File.join(@folder, "one/server.pid")
    file.release

    refute_path_exists File.join(@folder, "two/server.pid")
  end

  def test_what_another_process_has_written_where_the_link_led_before_is_left_alone
    %w[one two].each { |name| Dir.mkdir(File.join(@folder, name)) }
    file = PidFile.new(current("one")).claim
    File.write(File.join(@folder, "one/server.pid"), "1\n")
    current("two")
    file.restore

    assert_equal ["1\n", "#{Process.pid}\n"], pids_in(%w[one two])
    file.release

    assert_equal "1\n", File.read(File.join(@folder, "one/server.pid"))
  end

  # As a copy of a whole release does.
  def test_it_is_removed_where_it_was_written_and_where_the_link_leads_now
    %w[one two].each { |name| Dir.mkdir(File.join(@folder, name)) }
    file = PidFile.new(current("one")).claim
    FileUtils.cp(File.join(@folder, "one/server.pid"), File.join(@folder, "two"))
    current("two")
    file.restore

    assert_equal ["#{Process.pid}\n"] * 2, pids_in(%w[one two])
    file.release

    %w[one two].each { |name| assert_empty Dir.children(File.join(@folder, name)) }
  end

  def test_one_that_cannot_be_restored_is_removed_where_it_was_written
    Dir.mkdir(File.join(@folder, "one"))
    file = PidFile.new(current("one")).claim
    current("nowhere")
    file.restore

    assert_equal ["#{Process.pid}\n"], pids_in(%w[one])
    file.release

    assert_empty Dir.children(File.join(@folder, "one"))
  end

  def test_what_is_there_is_not_written_again
    file = PidFile.new(@path).claim
    before = File.stat(@path).ino
    file.restore

    assert_equal before, File.stat(@path).ino
    PidFile.new(nil).claim.restore
    assert_equal ["server.pid"], Dir.children(@folder)
  end

  def test_a_file_that_cannot_be_restored_is_reported
    said = []
    subscription = Pando::Events.subscribe("pidfile.unavailable") { |event| said << event[:reason] }
    Dir.mkdir(File.join(@folder, "one"))
    file = PidFile.new(current("one")).claim
    current("nowhere")
    file.restore

    assert_match(%r{\Athe pidfile #{@folder}/current/server.pid cannot be written: No such file}, said.fetch(0))
  ensure
    Pando::Events.unsubscribe(subscription)
  end

  def test_a_file_that_cannot_be_written_stops_the_boot
    error = assert_raises(Pando::BootError) { PidFile.new(File.join(@folder, "no/server.pid")).claim }

    assert_match(%r{the pidfile #{@folder}/no/server.pid cannot be written: No such file}, error.message)
  end

  def test_a_file_that_cannot_be_replaced_leaves_nothing_behind
    Dir.mkdir(@path)
    error = assert_raises(Pando::BootError) { PidFile.new(@path).claim }

    assert_match(/the pidfile #{@path} cannot be written: Is a directory/, error.message)
    assert_equal ["server.pid"], Dir.children(@folder)
  end

  private

  def claimed? = PidFile.new(@path).claim && File.read(@path) == "#{Process.pid}\n"

  def pids_in(folders) = folders.map { |name| File.read(File.join(@folder, name, "server.pid")) }

  # @return [String] the path of a pidfile behind a link that leads there from now on
  def current(name)
    link = File.join(@folder, "current")
    FileUtils.rm_f(link)
    File.symlink(name, link)
    File.join(link, "server.pid")
  end

  # Not as root, who may examine everything.
  def as_another_user(&block)
    skip("it takes root to become another user") unless Process.uid.zero?

    File.chmod(0o777, @folder)
    in_child do
      Process::UID.change_privilege(65_534)
      block.call
    end
  end

  def within_sleeper(folder, name = "sleep")
    pid = Process.spawn(["sleep", name], "1000", chdir: folder)
    wait_until(message: name) { File.read("/proc/#{pid}/cmdline").start_with?(name) }
    yield pid
  ensure
    Process.kill("KILL", pid)
    Process.wait(pid)
  end

  # A process with the name of a monitor.
  def within_server(folder, &block) = within_sleeper(folder, Pando::Cluster::Monitor::TITLE, &block)
end
