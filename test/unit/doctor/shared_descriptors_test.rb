# frozen_string_literal: true

require "test_helper"
require "pando/doctor"
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

# What is made of a descriptor that several processes have open.
class DoctorDescriptorsTest < Minitest::Test
  Doctor = Pando::Doctor
  Checks = Doctor::Checks
  Actor = Doctor::Stage::Actor
  HOLDERS = [Actor.new("mold", nil, 0, 10), Actor.new("worker", 0, 0, 11), Actor.new("worker", 1, 0, 12)].freeze
  USED = { number: 7, site: "/app/lib/store.rb:4", before: false }.freeze
  IO_OBJECT = { number: 7, type: "TCPSocket", location: "/app/config.ru:1", tls: false, ended: false }.freeze

  def test_a_connection_is_a_warning_until_two_processes_have_used_it
    [[[], :warning, "; no worker used it while it served"],
     [[USED], :warning, "; one worker used it, and no other process was seen to"],
     [[USED, USED], :error, ", and 2 workers used it at lib/store.rb:4"],
     [[USED.merge(before: true)], :error, ", and a worker used it at lib/store.rb:4 after another process had"]]
      .each do |uses, severity, words|
        found = judge(uses: uses)

        assert_equal([:shared_socket, severity], [found.kind, found.severity])
        assert_equal("the connection of TCPSocket to 10.0.0.7:6379 is open in 3 live processes (mold gen 0, " \
                     "worker 0 gen 0, worker 1 gen 0)#{words}", found.message)
      end
  end

  def test_what_to_do_depends_on_whether_it_is_used
    assert_match(/\ANothing, if its library replaces/, judge.advice)
    assert_match(/Close the connection in before_fork/, judge(uses: [USED, USED]).advice)
  end

  def test_a_library_that_replaces_what_it_inherits
    io = IO_OBJECT.merge(library: "redis-client")

    assert_equal(:note, judge(io: io).severity)
    assert_includes(judge(io: io).message, "redis-client does not use an inherited one")
    assert_equal(:error, judge(io: io, uses: [USED, USED]).severity, "it did all the same")
  end

  def test_c_code_on_a_unix_socket_or_a_pipe_is_not_seen
    unix = Doctor::SocketTable::Socket.new(:stream, "/run/db.sock", :unix)

    [judge(io: nil, socket: unix), judge(io: nil, link: "pipe:[5]", socket: nil)].each do |found|
      assert_equal(:warning, found.severity)
      assert_includes(found.message, "whether they use it cannot be seen, for it belongs to C code")
    end
    assert_includes(judge(io: nil).message, "no worker used it", "of TCP the kernel tells")
  end

  def test_of_two_generations_the_one_that_shows_the_use_counts
    found = findings(shared, shared(uses: [USED, USED]))

    assert_equal([:error], found.map(&:severity))
  end

  private

  def judge(**facts) = findings(shared(**facts)).first

  def findings(*all)
    evidence = Doctor::Evidence.new("/app")
    all.each { |one| evidence.generations << Doctor::Evidence::Generation.new(shared: [one]) }
    Checks::Descriptors.new(evidence).findings
  end

  def shared(uses: [], io: IO_OBJECT, link: "socket:[5]",
             socket: Doctor::SocketTable::Socket.new(:stream, "10.0.0.7:6379", :tcp))
    descriptor = Doctor::ProcessInfo::Descriptor.new(7, link, {})
    Doctor::SharedDescriptors::Shared.new(open: descriptor, io: io, holders: HOLDERS, uses: uses, socket: socket)
  end
end
