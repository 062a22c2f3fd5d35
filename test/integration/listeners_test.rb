# frozen_string_literal: true

require "test_helper"
require "securerandom"
require "support/servers"

# Promise: every kind of address is listened on, with its options, and left as it was found.
class ListenersTest < Minitest::Test
  include Support::Servers

  parallelize_me! # they wait most of the time

  # Tells where the request came in, and whether its socket sends small packets at once.
  APP = <<~RUBY
    require "socket"

    # @return [Socket, nil] the one connection over TCP, for it has no IO object
    def accepted
      Dir.children("/proc/self/fd").map(&:to_i).filter_map do |fd|
        socket = Socket.for_fd(fd)
        socket.autoclose = false
        socket if socket.local_address.ip? && socket.getpeername
      rescue SystemCallError
        nil # no socket, or one that listens
      end.first
    end

    run lambda { |env|
      nodelay = accepted&.getsockopt(:TCP, :NODELAY)&.bool
      [200, {}, [[*env.values_at("SERVER_NAME", "SERVER_PORT", "REMOTE_ADDR"), nodelay].join(" ")]]
    }
  RUBY

  # Writes the options of the worker's TCP listeners into a file. TCP_INFO of a
  # listening socket holds the length of its queue (tcp_diag of Linux).
  INSPECT = <<~'RUBY'
    reactor false
    after_worker_ready do |server, worker|
      File.write("options", worker.ios.grep(TCPServer).map { |socket|
        backlog = socket.getsockopt(:TCP, :INFO).data.unpack("C8L6").last
        [socket.getsockopt(:TCP, :NODELAY).int, socket.getsockopt(:TCP, 9).int, backlog].join(" ")
      }.join("\n"))
    end
  RUBY

  def test_a_tcp_port_of_the_kernels_choice
    server = serve(app: APP, config: "reactor false", listen: "127.0.0.1:0")
    port = server.events("monitor.listening").first["listen"][/\A127\.0\.0\.1:(\d+)\z/, 1].to_i

    assert_operator(port, :>, 0)
    assert_equal("127.0.0.1:#{port}", server.events("listener.opened").first["listen"])
    assert_equal("localhost #{port} 127.0.0.1 true", body(ask(TCPSocket.new("127.0.0.1", port), "localhost:#{port}")))
    assert_predicate(server.stop, :success?)
    assert_raises(Errno::ECONNREFUSED) { TCPSocket.new("127.0.0.1", port) }
  end

  def test_a_tcp_port_of_ipv6
    skip "no IPv6 on this machine" unless ipv6?
    server = serve(app: APP, config: "reactor false", listen: "[::1]:0")
    port = server.events("monitor.listening").first["listen"][/\A\[::1\]:(\d+)\z/, 1].to_i

    assert_equal("[::1] #{port} ::1 true", body(ask(TCPSocket.new("::1", port), "[::1]:#{port}")))
  end

  def test_all_addresses_of_both_families
    skip "no IPv6 on this machine" unless ipv6?
    server = serve(app: APP, config: "reactor false", listen: "[::]:0")
    port = server.events("monitor.listening").first["listen"][/\A\[::\]:(\d+)\z/, 1].to_i

    assert_equal("[::1] #{port} ::1 true", body(ask(TCPSocket.new("::1", port), "[::1]:#{port}")))
    assert_equal("localhost #{port} 127.0.0.1 true", body(ask(TCPSocket.new("127.0.0.1", port), "localhost:#{port}")))
  end

  def test_an_abstract_name
    name = "pando-test-#{SecureRandom.hex(8)}"
    server = serve(listen: "unix:@#{name}")

    assert_equal("unix:@#{name}", server.events("monitor.listening").first["listen"])
    assert_match(/pid=\d+ path=/, body(ask(UNIXSocket.new("\0#{name}"))))
    refute_path_exists(File.join(server.folder, "@#{name}"))
  end

  def test_several_at_once
    name = "pando-test-#{SecureRandom.hex(8)}"
    more = ["-l", "127.0.0.1:0", "-l", "unix:@#{name}", "-l", "unix:other.sock"]
    server = serve(config: "workers 2", arguments: more)
    port = server.events("monitor.listening").first["listen"][/127\.0\.0\.1:(\d+)/, 1].to_i
    server.refork # new workers inherit all of them

    [-> { server.connect }, -> { TCPSocket.new("127.0.0.1", port) }, -> { UNIXSocket.new("\0#{name}") },
     -> { UNIXSocket.new(File.join(server.folder, "other.sock")) }].each do |connect|
      assert_match(/pid=\d+/, body(ask(connect.call)))
    end
  end

  def test_options_of_tcp
    server = serve(listen: false, config: <<~RUBY)
      workers 1
      listen "127.0.0.1:0", backlog: 77
      #{INSPECT}
    RUBY

    assert_equal(["1 1 77"], options(server))
  end

  def test_options_of_tcp_switched_off
    server = serve(listen: false, config: <<~RUBY)
      workers 1
      listen "127.0.0.1:0", tcp_nodelay: false, defer_accept: false
      #{INSPECT}
    RUBY

    assert_equal(["0 0 #{[1024, somaxconn].min}"], options(server))
  end

  def test_mode_and_umask_of_a_unix_socket
    server = serve(listen: false, config: <<~RUBY)
      listen "unix:pando.sock", mode: 0o612
      listen "unix:other.sock", umask: 0o027
    RUBY

    assert_equal(0o612, File.stat(server.socket_path).mode & 0o777)
    assert_equal(0o750, File.stat(File.join(server.folder, "other.sock")).mode & 0o777)
    assert_equal(200, server.get("/").status)
  end

  def test_the_file_of_a_unix_socket_goes_with_the_server
    in_folder do |path|
      server = serve(listen: "unix:#{path}")
      assert(File.socket?(path))

      assert_predicate(server.stop, :success?)
      refute_path_exists(path)
    end
  end

  def test_a_file_that_is_another_ones_by_now_stays
    in_folder do |path|
      server = serve(listen: "unix:#{path}")
      File.unlink(path)
      other = UNIXServer.new(path)

      assert_predicate(server.stop, :success?)
      assert(File.socket?(path))
    ensure
      other&.close
    end
  end

  def test_a_stale_file_is_replaced
    in_folder do |path|
      UNIXServer.new(path).close
      server = serve(listen: "unix:#{path}")

      assert_match(/pid=\d+/, body(ask(UNIXSocket.new(path))))
      assert_predicate(server.stop, :success?)
    end
  end

  # Its owner is too busy to accept, so waiting for room in its queue would never end.
  def test_a_socket_whose_queue_is_full_is_in_use
    in_folder do |path|
      live = UNIXServer.new(path).tap { |server| server.listen(0) }
      crowd = []
      100.times { crowd.push(Socket.new(:UNIX, :STREAM)).last.connect_nonblock(Socket.sockaddr_un(path)) }
      flunk("its queue has no end")
    rescue IO::EAGAINWaitWritable
      assert_refused("unix:#{path}", /another process listens there/)
    ensure
      [live, *crowd].compact.each(&:close)
    end
  end

  def test_a_socket_in_use_and_other_files_are_refused_and_nothing_is_left_behind
    in_folder do |path|
      live = UNIXServer.new(path)
      assert_refused("unix:#{path}", /another process listens there/)
      assert(File.socket?(path))

      File.write("#{path}.txt", "precious")
      assert_refused("unix:#{path}.txt", /not a socket/)
      assert_equal("precious", File.read("#{path}.txt"))

      port = (other = TCPServer.new("127.0.0.1", 0)).addr[1]
      assert_refused("127.0.0.1:#{port}", /another process listens there/, "-l", "unix:#{path}.first")
      refute_path_exists("#{path}.first")
    ensure
      [live, other].compact.each(&:close)
    end
  end

  private

  def in_folder
    Dir.mktmpdir("pando-socket") { |folder| yield File.join(folder, "app.sock") }
  end

  def ask(socket, host = "localhost")
    socket.write("GET / HTTP/1.1\r\nHost: #{host}\r\nConnection: close\r\n\r\n")
    socket.read
  ensure
    socket.close
  end

  def body(answer)
    assert_match(/\AHTTP\S+ 200 /, answer)
    answer[/\r\n\r\n(.*)\z/m, 1]
  end

  def options(server)
    file = File.join(server.folder, "options")
    wait_until(message: "the worker's note") { File.exist?(file) && !File.empty?(file) }
    File.readlines(file, chomp: true)
  end

  # @param first [Array<String>] addresses before it
  def assert_refused(address, reason, *first)
    server = serve(listen: false, arguments: [*first, "-l", address], ready: false)

    assert_equal(1, server.wait_for_exit.exitstatus)
    assert_match(reason, server.output)
  end

  def ipv6?
    TCPServer.new("::1", 0).close
    true
  rescue SystemCallError
    false
  end

  # The kernel cuts longer queues.
  def somaxconn = Integer(File.read("/proc/sys/net/core/somaxconn"))
end
