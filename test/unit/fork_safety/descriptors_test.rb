# frozen_string_literal: true

require "test_helper"
require "openssl"
require "socket"
require "support/checkout"
require "tempfile"
require "pando/fork_safety"

# close_all_ios! concerns every IO of the process, hence each test has a child of
# its own do it and judges by what the child reports and what the parent still has.
class ForkSafetyDescriptorsTest < Minitest::Test
  # Runs the block in a child; what it returns comes back as an array of lines.
  def in_child
    reader, writer = IO.pipe
    pid = fork do
      reader.close
      Pando.keep_io(writer)
      answer = begin
        Array(yield)
      rescue Exception => error # rubocop:disable Lint/RescueException
        ["#{error.class}: #{error.message}", *error.backtrace]
      end
      writer.syswrite(answer.join("\n"))
    ensure
      exit!(0)
    end
    writer.close
    reader.read.split("\n")
  ensure
    reader.close
    Process.wait(pid)
  end

  def outcome
    yield.inspect
  rescue SystemCallError, IOError => error
    error.class.name
  end

  def test_a_socket_looks_hung_up_and_keeps_its_number
    ours, theirs = UNIXSocket.pair
    answer = in_child do
      number = theirs.fileno
      Pando.close_all_ios!
      [theirs.fileno == number, theirs.closed?, outcome { theirs.read_nonblock(1) }, outcome { theirs.write("x") }]
    end

    assert_equal %w[true false EOFError Errno::EPIPE], answer
    ours.write("still there")
    assert_equal "still there", theirs.readpartial(64)
  ensure
    [ours, theirs].each(&:close)
  end

  def test_the_peer_hears_nothing_and_what_was_buffered_is_dropped
    ours, theirs = UNIXSocket.pair
    write_only = IO.for_fd(theirs.fileno, "w", autoclose: false)
    [theirs, write_only].each do |io|
      io.sync = false
      io.write("half a request")
      answer = in_child do
        Pando.close_all_ios!
        io.close
        ["closed"]
      end

      assert_equal ["closed"], answer
      assert_equal :wait_readable, ours.read_nonblock(64, exception: false)
      io.flush

      assert_equal "half a request", ours.readpartial(64)
    end
  ensure
    [ours, theirs].each(&:close)
  end

  # It was open when the IOs were chosen.
  def test_an_io_that_another_thread_closes_meanwhile
    answer = in_child do
      late, other = IO.pipe
      closing = Module.new { define_method(:open) { |&block| super() { |one| late.close.then { block.call(one) } } } }
      Pando::ForkSafety::Substitutes.singleton_class.prepend(closing)
      Pando.close_all_ios!
      [late.closed?, outcome { other.write("x") }]
    end

    assert_equal %w[true 1], answer
  end

  def test_what_was_read_ahead_is_dropped
    ours, theirs = UNIXSocket.pair
    ours.write("first\nsecond\n")
    assert_equal "first\n", theirs.gets
    answer = in_child do
      Pando.close_all_ios!
      [theirs.gets.inspect]
    end

    assert_equal ["nil"], answer
    assert_equal "second\n", theirs.gets
  ensure
    [ours, theirs].each(&:close)
  end

  def test_anything_else_becomes_dev_null
    pipe_reader, pipe_writer = IO.pipe
    pipe_writer.write("for the parent")
    answer = Tempfile.create("pando") do |file|
      file.write("content")
      file.rewind
      in_child do
        Pando.close_all_ios!
        [file, pipe_reader].map { |io| outcome { io.read } } + [outcome { pipe_writer.syswrite("x") }] +
          [file, pipe_reader, pipe_writer].map { |io| File.readlink("/proc/self/fd/#{io.fileno}") }
      end
    end

    assert_equal ['""', '""', "1", *["/dev/null"] * 3], answer
    assert_equal "for the parent", pipe_reader.readpartial(64)
  ensure
    [pipe_reader, pipe_writer].each(&:close)
  end

  def test_a_listener_accepts_nothing_more
    server = TCPServer.new("127.0.0.1", 0)
    answer = in_child do
      Pando.close_all_ios!
      [outcome { server.accept_nonblock }]
    end

    assert_equal ["Errno::EINVAL"], answer
    client = TCPSocket.new("127.0.0.1", server.addr[1])
    assert_instance_of TCPSocket, server.accept
  ensure
    [client, server].each { |io| io&.close }
  end

  # An IO.for_fd of a socket that was closed since: its number is free for what is put
  # in the place of the others, which come in no order.
  def test_an_io_that_outlived_its_number_is_no_harm_to_the_others
    pairs = Array.new(100) { UNIXSocket.pair }
    former, sockets = pairs.flatten.partition.with_index { |_, index| index.even? }
    outlived = former.map { |socket| IO.for_fd(socket.fileno, autoclose: false) }
    former.each(&:close)
    answer = in_child do
      Pando.close_all_ios!
      sockets.map { |socket| outcome { socket.send("x", 0) } }.tally.flatten
    end

    assert_equal ["Errno::EPIPE", "100"], answer
    assert(outlived.none?(&:closed?))
  ensure
    sockets.each(&:close)
  end

  # In a child, Ruby makes its timer anew with the lowest numbers that are free.
  OUTLIVED = <<~RUBY
    require "pando/fork_safety"
    outlived = (3..8).map { |number| IO.for_fd(number, autoclose: false) }
    outlived.each { |io| Pando::Sys.close_fd(io.fileno) }
    Process.wait(fork do
      Thread.new { sleep 0.01 }.join
      links = -> { outlived.map(&:fileno).select { |number| Pando::Sys.reserved_fd?(number) }.to_h { |number| [number, File.readlink("/proc/self/fd/\#{number}")] } }
      before = links.call
      Pando.close_all_ios!
      puts [before.any?, links.call == before].inspect
    end)
  RUBY

  def test_an_io_that_outlived_its_number_is_no_harm_to_the_interpreter
    taken = (3..8).to_h { |number| [number, File::NULL] }
    output = IO.popen([RbConfig.ruby, "-I#{Support::Checkout.path("lib")}", "-e", OUTLIVED, taken], &:read)

    assert_equal "[true, true]\n", output
  end

  def test_kept_ios_stay_even_under_a_second_io_object
    ours, theirs = UNIXSocket.pair
    answer = in_child do
      Pando.keep_io(theirs)
      second = IO.for_fd(theirs.fileno, autoclose: false)
      Pando.close_all_ios!
      second.syswrite("kept")
      theirs.write(" twice")
      ["written"]
    end

    assert_equal ["written"], answer
    assert_equal "kept twice", ours.readpartial(64)
  ensure
    [ours, theirs].each(&:close)
  end

  def test_both_ends_of_a_kept_two_way_pipe_stay
    answer = in_child do
      cat = IO.popen("cat", "r+")
      Pando.keep_io(cat)
      Pando.close_all_ios!
      cat.write("round trip")
      cat.close_write
      [cat.read]
    end

    assert_equal ["round trip"], answer
  end

  def test_stdio_and_logs_stay
    Tempfile.create("pando") do |file|
      log = File.open(file.path, "a") # rubocop:disable Style/FileOpen
      answer = in_child do
        before = (0..2).map { |fd| File.stat("/proc/self/fd/#{fd}").ino }
        Pando.close_all_ios!
        log.syswrite("a line\n")
        [before == (0..2).map { |fd| File.stat("/proc/self/fd/#{fd}").ino }]
      end
      log.close

      assert_equal ["true"], answer
      assert_equal "a line\n", file.read
    end
  end

  def test_close_on_exec_stays_as_it_was
    first, second = IO.pipe
    second.close_on_exec = false
    answer = in_child do
      Pando.close_all_ios!
      [first.close_on_exec?, second.close_on_exec?]
    end

    assert_equal %w[true false], answer
  ensure
    [first, second].each(&:close)
  end

  def test_closed_unopened_and_orphaned_io_objects_are_passed_over
    answer = in_child do
      keep = [IO.allocate, IO.pipe.each(&:close)]
      orphan = IO.for_fd(IO.sysopen("/dev/zero"), autoclose: false)
      IO.for_fd(orphan.fileno).close
      GC.start
      GC.disable # what it would close meanwhile is not the point
      before = Dir.children("/proc/self/fd").size
      first = Pando.close_all_ios!
      [first == Pando.close_all_ios!, before == Dir.children("/proc/self/fd").size, keep.size]
    end

    assert_equal %w[true true 2], answer
  end

  def test_a_tls_connection_of_the_parent_survives_its_childs_goodbye
    client, server = tls_pair
    server.puts("hello")
    assert_equal "hello\n", client.gets
    answer = in_child do
      Pando.close_all_ios!
      client.close # would send close_notify
      ["closed"]
    end

    assert_equal ["closed"], answer
    client.puts("still there")
    assert_equal "still there\n", server.gets
  ensure
    [client, server].each { |socket| socket&.to_io&.close }
  end

  def test_only_an_io_can_be_kept
    assert_raises(TypeError) { Pando.keep_io("a string") }
    assert_raises(TypeError) { Pando.keep_io($stdin, nil) }
    Pando.keep_io
  end

  private

  def tls_pair
    key = OpenSSL::PKey::EC.generate("prime256v1")
    ours, theirs = UNIXSocket.pair
    context = OpenSSL::SSL::SSLContext.new
    context.add_certificate(certificate(key), key)
    server = OpenSSL::SSL::SSLSocket.new(theirs, context)
    client = OpenSSL::SSL::SSLSocket.new(ours)
    accepting = Thread.new { server.accept }
    client.connect
    accepting.join
    [client, server]
  end

  def certificate(key)
    OpenSSL::X509::Certificate.new.tap do |cert|
      cert.subject = cert.issuer = OpenSSL::X509::Name.parse("/CN=pando.test")
      cert.serial = 1
      cert.not_before = Time.now - 60
      cert.not_after = Time.now + 3600
      cert.public_key = key
      cert.sign(key, "SHA256")
    end
  end
end
