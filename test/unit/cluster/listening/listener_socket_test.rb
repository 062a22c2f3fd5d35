# frozen_string_literal: true

require "test_helper"
require "pando/cluster/monitor"
require "pando/errors"
require "tmpdir"

# A server that starts at the same time as another one, in the same folder.
class SocketFileTest < Minitest::Test
  SocketFile = Pando::Cluster::Listening::SocketFile
  ListenerSocket = Pando::Cluster::Listening::ListenerSocket
  ROUNDS = 30

  def setup
    @folder = Dir.mktmpdir
    @path = File.join(@folder, "pando.sock")
  end

  def teardown = FileUtils.rm_rf(@folder)

  def test_of_two_that_find_what_a_killed_server_left_one_listens_and_one_says_why_not
    ROUNDS.times do
      leave_behind
      answers = at_once(2) { listen }

      assert_equal(["another process listens there", "listens"], answers.sort)
      File.unlink(@path)
    end
  end

  # Anybody may lock a folder that is everybody's to read.
  def test_a_folder_that_somebody_keeps_locked_is_no_obstacle_for_ever
    File.open(@folder) do |folder|
      folder.flock(File::LOCK_EX)

      assert_equal(:taken, SocketFile.take(@path, patience: 0.05) { :taken })
    end
  end

  def test_what_is_no_socket_stays
    File.write(@path, "mine")

    assert_match(/not a socket/, assert_raises(Pando::BootError) { SocketFile.take(@path) { flunk } }.message)
    assert_equal("mine", File.read(@path))
  end

  private

  def leave_behind = UNIXServer.new(@path).close

  def listen
    socket = ListenerSocket.open(Pando::Cluster::Control::Spec.new(path: @path, required: true))
    socket.listen(1)
    "listens"
  rescue Pando::BootError => e
    e.message[/\Acannot listen on [^ ]+: (.*);/, 1] || e.message
  end

  # @return [Array<String>] what the block returned in each of so many processes, which live until all have said it
  def at_once(count)
    (begun, start), (over, finish), (told, tell) = Array.new(3) { IO.pipe }
    pids = Array.new(count) do
      fork do
        [start, finish].each(&:close)
        begun.read
        tell.syswrite("#{yield}\n")
        over.read
      ensure
        exit!(0)
      end
    end
    [start, tell].each(&:close)
    Array.new(count) { told.gets&.chomp }
  ensure
    [start, finish, begun, over, told].each(&:close)
    pids.each { |pid| Process.wait(pid) }
  end
end
