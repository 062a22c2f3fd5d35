# frozen_string_literal: true

require "pando/cluster"
require "pando/config"
require "pando/http/reactor_setup"
require "socket"

module HTTPSupport
  # What the reactor process has and does, however it was started. A class that includes this module defines `launch`,
  # with the parameters of Reactor.fork.
  module ReactorProcess
    Reactor = Pando::HTTP::Reactor

    def setup
      @listener = TCPServer.new("127.0.0.1", 0)
      @config = Pando::Config.load(%w[--listen 127.0.0.1:0])
      @setup = Pando::HTTP::ReactorSetup.new(@config)
      @monitor, @link = UNIXSocket.pair(:SEQPACKET)
    end

    def teardown
      [@monitor, @link, @listener].each { |io| io.close unless io.closed? }
      Process.kill("KILL", @pid) if @pid
      Process.wait(@pid) if @pid
    rescue Errno::ESRCH, Errno::ECHILD
      nil
    end

    def test_it_has_no_descriptor_but_its_own
      strangers = [IO.pipe, TCPServer.new("127.0.0.1", 0)].flatten.each { |io| io.close_on_exec = false }
      start
      kinds = Dir.children("/proc/#{@pid}/fd").map { |fd| File.readlink("/proc/#{@pid}/fd/#{fd}") }
      theirs = strangers.map { |io| File.readlink("/proc/self/fd/#{io.fileno}") }

      assert_empty kinds & theirs
      # The standard ones; listener, channel, its wake-up, link; an epoll, and the pipe to the thread that closes files.
      assert_equal 3 + 4 + 3, kinds.size, kinds.inspect
    ensure
      strangers&.each(&:close)
    end

    def test_signals_are_not_for_it
      start
      %w[TERM INT QUIT HUP USR1 USR2 PIPE ALRM URG CHLD].each { |name| Process.kill(name, @pid) }
      assert_serves
      Process.kill("SEGV", @pid)
      assert_equal Signal.list["SEGV"], ended.termsig
    end

    def test_it_ends_with_its_monitor_even_if_somebody_holds_the_link
      reader, writer = IO.pipe
      parent = fork do
        reader.close
        writer.puts launch(*arguments(grace: 0.1))
        writer.flush
        @monitor.recv(100)
        exit!(0)
      end
      writer.close
      child = reader.read.to_i
      Process.wait(parent)

      wait_until(message: "the end of the reactor") { gone?(child) }
    ensure
      [reader, writer].each(&:close)
    end

    def test_it_says_why_it_cannot_run
      output = Tempfile.new("stderr")
      pid = fork do
        $stderr.reopen(output)
        exit!(Process.wait2(launch([], @listener, @listener, @link, nil, settings, 1.0))[1].exitstatus)
      end

      assert_equal 1, Process.wait2(pid)[1].exitstatus
      assert_equal "pando reactor: it cannot run: Invalid argument\n", output.tap(&:rewind).read
    end

    private

    def arguments(grace: 1.0)
      [[Pando::Cluster::Listening::Listener.new(@listener)], *@setup.descriptors, @link, nil, settings, grace]
    end

    def settings = Pando::HTTP::ReactorSettings.new(@config)

    def start
      @pid = launch(*arguments)
      assert_ready
    end

    def assert_ready
      assert @monitor.wait_readable(90), "no word from the reactor"
      assert_equal Reactor::READY, @monitor.recv(100).unpack1("L4")
    end

    def assert_serves
      client = TCPSocket.new("127.0.0.1", @listener.addr[1])
      client.write("bad\r\n\r\n")

      assert_match(%r{\AHTTP/1.1 400}, client.read)
    ensure
      client&.close
    end

    def ended = Process.wait2(@pid)[1].tap { @pid = nil }

    def gone?(pid)
      File.read("/proc/#{pid}/stat")[/\) (\w)/, 1] == "Z"
    rescue Errno::ENOENT, Errno::ESRCH
      true
    end
  end
end
