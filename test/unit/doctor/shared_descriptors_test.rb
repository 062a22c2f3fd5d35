# frozen_string_literal: true

require "test_helper"
require "pando/doctor/shared_descriptors"
require "socket"
require "tempfile"

# What is seen of a process from outside: here of this one.
class DoctorProcessInfoTest < Minitest::Test
  ProcessInfo = Pando::Doctor::ProcessInfo

  def test_a_file_with_its_lock
    Tempfile.create do |file|
      file.write("hello")
      file.flush
      file.flock(File::LOCK_EX)
      seen = info.descriptors.fetch(file.fileno)

      assert_equal([file.path, true, true, false],
                   [seen.link, seen.regular?, seen.locked?, seen.append?])
      file.flock(File::LOCK_UN)
      refute_predicate(info.descriptors.fetch(file.fileno), :locked?)
    end
  end

  def test_a_log_is_appended_to
    Tempfile.create do |file|
      File.open(file.path, "a") { |log| assert_predicate(info.descriptors.fetch(log.fileno), :append?) }
    end
  end

  def test_one_open_file_in_two_processes
    reader, writer = IO.pipe
    File.open(__FILE__) do |file|
      child = fork { reader.read || exit!(0) }
      other = ProcessInfo.new(child)
      assert(info.shares?(file.fileno, other))
      refute(ProcessInfo.new(child).shares?(-1, other))
      File.open(__FILE__) do |again|
        refute(Pando::Sys.open_file_shared?(Process.pid, again.fileno, child, file.fileno), "opened by itself")
      end
    ensure
      Process.kill(:KILL, child)
      Process.wait(child)
    end
  ensure
    [reader, writer].each(&:close)
  end

  def test_a_process_that_is_gone
    child = fork { exit!(0) }
    Process.wait(child)

    assert_nil(ProcessInfo.of(child))
    assert_empty(ProcessInfo.new(child).memory)
  end

  def test_memory_in_bytes
    figures = info.memory

    assert_operator(figures[:rss], :>=, figures[:pss])
    assert_operator(figures[:pss], :>=, figures[:uss])
    assert_operator(figures[:uss], :>, 100_000)
  end

  def test_sockets_by_what_they_are
    server = TCPServer.new("127.0.0.1", 0)
    port = server.local_address.ip_port
    client = TCPSocket.new("127.0.0.1", port)
    udp = UDPSocket.new.tap { |one| one.connect("127.0.0.1", port) }
    idle = UDPSocket.new
    pair = UNIXSocket.pair

    assert_equal([[:listener, "127.0.0.1:#{port}", true], [:stream, "127.0.0.1:#{port}", true],
                  [:datagram, "127.0.0.1:#{port}", false], [:stream, "a UNIX socket", false]],
                 [server, client, udp, pair[0]].map { |one| [socket(one).kind, socket(one).peer, socket(one).tcp?] })
    assert_equal(:idle, socket(idle)&.kind || :idle)
  ensure
    [server, client, udp, idle, *pair].each(&:close)
  end

  def test_addresses_of_ipv6
    server = TCPServer.new("::1", 0)

    assert_equal("[::1]:#{server.local_address.ip_port}", socket(server).peer)
  rescue Errno::EADDRNOTAVAIL, Errno::EAFNOSUPPORT
    skip("no IPv6 here")
  ensure
    server&.close
  end

  private

  def info = ProcessInfo.of(Process.pid)
  def socket(io) = Pando::Doctor::SocketTable.new(Process.pid)[info.descriptors.fetch(io.fileno).inode]
end
