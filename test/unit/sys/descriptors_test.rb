# frozen_string_literal: true

require "test_helper"
require "socket"
require "pando/sys"

class SysDescriptorsTest < Minitest::Test
  ROW = %i[number target flags position reserved domain type listening hung_up local peer].freeze

  # A collection between two counts would close what other tests have left behind.
  def setup = GC.disable
  def teardown = GC.enable

  def test_every_open_descriptor_is_listed_once_and_no_other
    File.open(__FILE__) do |file|
      numbers = Pando::Sys.descriptors.map(&:first)

      assert_equal(numbers.uniq, numbers)
      assert_includes(numbers, file.fileno)
      assert_equal(Dir.children("/proc/self/fd").size - 1, numbers.size) # without its own
      assert_equal(numbers.size, Pando::Sys.descriptor_count)
    end
  end

  def test_a_disowned_descriptor_is_open_and_nobodys
    ours, theirs = UNIXSocket.pair
    number = Pando::Sys.disown(theirs)

    assert_predicate(theirs, :closed?)
    ours.write("still open")
    assert_equal("still open", IO.open(number) { |io| io.readpartial(64) })
  ensure
    ours.close
  end

  def test_a_borrowed_descriptor_stays_its_owners
    socket = TCPServer.new("127.0.0.1", 0)
    borrowed = nil
    port = Pando::Sys.borrow(socket.fileno, Socket) { |any| (borrowed = any).local_address.ip_port }

    assert_equal(socket.addr[1], port)
    assert_predicate(borrowed, :closed?)
    refute_predicate(socket, :closed?)
    assert_equal(port, socket.addr[1])
    assert_raises(Errno::EBADF) { Pando::Sys.borrow(1_000_000, Socket) { flunk } }
  ensure
    socket.close
  end

  def test_what_each_number_is
    rows = Pando::Sys.descriptors.to_h { |number, target| [number, target] }

    assert_equal(rows, Pando::Sys.descriptor_targets)
    assert(Pando::Sys.descriptor_targets.values.all?(&:frozen?))
  end

  def test_a_connection_beside_those_that_are_known
    known = Pando::Sys.descriptors.map(&:first) # of the process that runs the tests
    others = [UDPSocket.new.tap { |socket| socket.connect("127.0.0.1", 9) }, TCPServer.new("127.0.0.1", 0), *IO.pipe]

    refute(Pando::Sys.connection_beside?(known))
    ours, theirs = UNIXSocket.pair(:SEQPACKET)

    assert(Pando::Sys.connection_beside?(known))
    assert(Pando::Sys.connection_beside?([*known, ours.fileno]))
    refute(Pando::Sys.connection_beside?([*known, ours.fileno, theirs.fileno]))
  ensure
    [*others, ours, theirs].compact.each(&:close)
  end

  def test_more_descriptors_than_one_reading_of_the_folder_has
    copies = Array.new(600) { $stderr.dup }

    assert_equal(Dir.children("/proc/self/fd").size - 1, Pando::Sys.descriptor_count)
    assert_empty(copies.map(&:fileno) - Pando::Sys.descriptors.map(&:first))
  ensure
    copies&.each(&:close)
  end

  def test_a_files_position_is_told_and_not_moved
    File.open(__FILE__) do |file|
      file.sysread(7)
      row = find(file)

      assert_equal([File.realpath(__FILE__), 7, false], row.values_at(:target, :position, :reserved))
      assert_equal(7, file.sysseek(0, IO::SEEK_CUR))
    end
  end

  def test_sockets_are_told_apart_without_reading_from_them
    server = TCPServer.new("127.0.0.1", 0)
    client = TCPSocket.new("127.0.0.1", server.addr[1])
    accepted = server.accept
    client.write("waiting")
    wait_until { accepted.wait_readable(0) }

    assert(find(server)[:listening])
    assert_equal([Socket::AF_INET, Socket::SOCK_STREAM, false, false],
                 find(accepted).values_at(:domain, :type, :listening, :hung_up))
    assert_equal("127.0.0.1:#{server.addr[1]}", Addrinfo.new(find(client)[:peer]).inspect_sockaddr)
    client.close
    refute(find(accepted)[:hung_up], "there is something left to read")
    assert_equal("waiting", accepted.read(7))
    wait_until { find(accepted)[:hung_up] }
  ensure
    [server, client, accepted].compact.each(&:close)
  end

  def test_an_unconnected_socket_has_no_peer
    socket = UDPSocket.new

    assert_nil(find(socket)[:peer])
    socket.connect("127.0.0.1", 9)
    refute_nil(find(socket)[:peer])
  ensure
    socket.close
  end

  def test_rubys_own_are_marked
    Thread.new { nil }.join # with a second thread it needs them
    own = Pando::Sys.descriptors.map { |row| ROW.zip(row).to_h }.select { |row| row[:reserved] }

    refute_empty(own)
    assert(own.all? { |row| row[:target].start_with?("anon_inode:", "pipe:") }, own.inspect)
  end

  def test_the_same_open_file_is_recognized_in_another_process
    file = File.open(__FILE__) # rubocop:disable Style/FileOpen
    other = File.open(__FILE__) # rubocop:disable Style/FileOpen
    parent = Process.pid
    pid = fork { exit!(tell(parent, file.fileno, file.fileno) + (tell(parent, other.fileno, file.fileno) * 10)) }
    _, status = Process.wait2(pid)
    skip "kcmp(2) is forbidden here" if status.exitstatus == 22

    assert_equal(1, status.exitstatus)
  ensure
    [file, other].each(&:close)
  end

  def test_the_other_end_of_a_socket_pair_is_found
    one, other = UNIXSocket.pair
    peers = Pando::Sys.unix_peers([inode(one), inode(other)])
    skip "this kernel has no sock_diag for unix sockets" if peers.nil?

    assert_equal([inode(other), inode(one)], peers)
    other.close
    assert_equal([0], Pando::Sys.unix_peers([inode(one)]))
    assert_equal([0], Pando::Sys.unix_peers([4_294_967_294]))
    assert_empty(Pando::Sys.unix_peers([]))
  ensure
    one&.close
  end

  def test_a_descriptor_of_another_process
    reader, writer = IO.pipe
    pid = spawn("cat", in: reader)

    assert_equal("pipe:[#{inode(reader)}]", Pando::Sys.descriptor_of(pid, 0))
    refute(Pando::Sys.descriptor_of(pid, 999))
  ensure
    [reader, writer].each(&:close)
    Process.wait(pid)
    assert_equal(false, Pando::Sys.descriptor_of(pid, 0))
  end

  def test_thousands_are_no_matter
    files = Array.new(3000) { File.open(File::NULL) }
    assert_operator(Pando::Sys.descriptors.size, :>=, 3000)
  rescue Errno::EMFILE
    skip "no 3000 descriptors are allowed here"
  ensure
    files&.each(&:close)
  end

  private

  def find(io)
    row = Pando::Sys.descriptors.find { |one| one.first == io.fileno }
    ROW.zip(row).to_h
  end

  def inode(socket) = File.readlink("/proc/self/fd/#{socket.fileno}")[/\d+/].to_i
  def tell(pid, theirs, ours) = { true => 1, false => 0, nil => 2 }.fetch(Pando::Sys.same_open_file?(pid, theirs, ours))
end
