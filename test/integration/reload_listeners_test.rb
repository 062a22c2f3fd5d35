# frozen_string_literal: true

require "test_helper"
require "securerandom"
require "support/keep_alive_load"
require "support/servers"

# A reload opens the listeners that the new configuration adds and closes those that it takes out, and no request
# that was let in is lost.
class ReloadListenersTest < Minitest::Test
  include Support::Servers

  parallelize_me! # they wait most of the time

  # The port, and the longest queues of the TCP listeners, if asked for them: TCP_INFO has them (tcp_diag of Linux).
  APP = <<~RUBY
    require "socket"
    run lambda { |env|
      queues = -> { ObjectSpace.each_object(TCPServer).map { |one| one.getsockopt(:TCP, :INFO).data.unpack("C8L6").last } }
      [200, {}, [env["PATH_INFO"] == "/queues" ? queues.call.join(" ") : env["SERVER_PORT"]]]
    }
  RUBY

  MODES = { "behind_the_reactor" => true, "in_direct_mode" => false }.freeze

  def self.in_each_mode(name, &test)
    MODES.each do |mode, reactor|
      define_method(:"#{name}_#{mode}") do
        @reactor = reactor
        instance_exec(&test)
      end
    end
  end

  def deploy(*lines)
    @server = serve(app: APP, config: config(*lines), listen: false)
  end

  # The socket that all tests know, and other lines.
  def config(*lines)
    ["workers 2", "refork :manual", "reactor #{@reactor}", 'listen "unix:pando.sock"', *lines, ""].join("\n")
  end

  def reload(*lines, outcome: "reload.finished")
    @server.write("pando.rb", "log_format :json; rollout canary: false\n#{config(*lines)}")
    @server.wait_for(outcome) { @server.signal("HUP") }
  end

  def path(name) = File.join(@server.folder, name)

  # Without a Host, so that the listener gives the port.
  def ask(socket) = answer_of(send_request(socket))

  def send_request(socket) = socket.tap { socket.write("GET / HTTP/1.0\r\n\r\n") }

  def answer_of(socket)
    answer = socket.read
    answer[%r{\AHTTP/1.1 200 .*\r\n\r\n(\d+)\z}m, 1] || answer
  ensure
    socket.close
  end

  def unix(name) = UNIXSocket.new(path(name))

  # Of the kernel's choice.
  def port_opened(event) = event["listen"][/\A127\.0\.0\.1:(\d+)\z/, 1].to_i

  in_each_mode(:test_listeners_come_and_go) do
    deploy('listen "unix:old.sock"')
    name = "pando-test-#{SecureRandom.hex(8)}"
    reload('listen "unix:new.sock", mode: 0o600', "listen \"unix:@#{name}\"", 'listen "127.0.0.1:0"')
    port = port_opened(@server.events("listener.opened").last)

    assert_equal([80, 80, 80, port].map(&:to_s),
                 [unix("pando.sock"), unix("new.sock"), UNIXSocket.new("\0#{name}"), TCPSocket.new("127.0.0.1", port)]
                   .map { |socket| ask(socket) })
    assert_equal(0o600, File.stat(path("new.sock")).mode & 0o777)
    refute_path_exists(path("old.sock"))
    assert_equal(["unix:#{path("old.sock")}"], @server.events("listener.closed").map { |one| one["listen"] })
    reload
    wait_until { refused?(port) }

    assert_raises(Errno::ECONNREFUSED) { UNIXSocket.new("\0#{name}") }
    assert_equal("80", ask(unix("pando.sock")))
    assert_predicate(@server.stop, :success?)
  end

  in_each_mode(:test_what_was_opened_is_inherited_by_all_that_follow) do
    deploy
    reload('listen "unix:new.sock"')
    @server.refork
    newest = @server.events("worker.ready").last["pid"] # the old ones may be leaving still
    @server.wait_for("worker.ready") { Process.kill("KILL", newest) }
    if @reactor
      reactor = @server.tree.titled("reactor").first
      @server.wait_for("reactor.ready") { Process.kill("KILL", reactor.pid) }
    end

    assert_equal("80", ask(unix("new.sock")))
  end

  in_each_mode(:test_a_listener_that_cannot_be_opened_changes_nothing) do
    deploy
    other = TCPServer.new("127.0.0.1", 0)
    failed = reload('listen "unix:new.sock"', "listen \"127.0.0.1:#{other.addr[1]}\"", outcome: "reload.failed")

    assert_match(/cannot listen on 127.0.0.1:#{other.addr[1]}: another process listens there/, failed["reason"])
    refute_path_exists(path("new.sock"))
    assert_equal(1, @server.events("generation.booting").size)
    assert_equal("80", ask(unix("pando.sock")))
  ensure
    other&.close
  end

  in_each_mode(:test_a_release_that_fails_later_closes_what_it_had_opened) do
    deploy('listen "unix:old.sock"')
    failed = reload('listen "unix:new.sock"', "after_worker_fork { raise 'no db' }", outcome: "reload.failed")

    assert_match(/no db/, failed["reason"])
    refute_path_exists(path("new.sock"))
    assert_equal("80", ask(unix("old.sock")))
  end

  in_each_mode(:test_options_of_a_listener_that_stays) do
    deploy('listen "127.0.0.1:0", backlog: 77')
    port = port_opened(@server.events("listener.opened").find { |one| one["listen"].start_with?("127") })
    assert_equal("77", @server.get("/queues").body) unless @reactor # whose workers do not have it
    reload('listen "127.0.0.1:0", backlog: 99, proxy_protocol: true')
    wait_until { ask_proxied(port) == port.to_s } # the reactor is told a moment after the reload

    assert_equal("99", @server.get("/queues").body) unless @reactor
  end

  def ask_proxied(port)
    ask(TCPSocket.new("127.0.0.1", port).tap { |socket| socket.write("PROXY TCP4 192.0.2.1 192.0.2.2 1 2\r\n") })
  rescue Errno::ECONNRESET
    nil # refused, before all was read
  end

  in_each_mode(:test_whoever_has_connected_is_answered) do
    deploy('listen "unix:old.sock"')
    wait_until { ask(unix("old.sock")) }
    early = Array.new(5) { unix("old.sock") }
    reload
    early.each { |socket| send_request(socket) } # a connection without a request has a second left
    assert_equal(["80"] * 5, early.map { |socket| answer_of(socket) })
  end

  def test_a_kept_connection_of_a_closed_listener_ends_after_an_answer_or_while_it_is_idle
    @reactor = true
    deploy('listen "unix:old.sock"')
    idle, asking = Array.new(2) { unix("old.sock").tap { |socket| get(socket) } }
    stays = unix("pando.sock").tap { |socket| get(socket) }
    reload
    # The reactor is told a moment after the reload; from then on idle connections have a second left.
    loop { break if get(asking).match?(/^connection: close\r$/i) }
    assert_equal("", asking.read)
    assert_equal("", idle.read)
    refute_match(/^connection: close\r$/i, get(stays))
  end

  in_each_mode(:test_no_request_is_lost) do
    deploy
    load = Support::KeepAliveLoad.start(@server.method(:connect), clients: 2)
    answers = []
    4.times do |round|
      reload("listen \"unix:#{round}.sock\"")
      answers << ask(unix("#{round}.sock"))
    end
    load.stop

    assert_empty(load.failures)
    assert_equal(["80"] * 4, answers)
    assert_equal(["3.sock", "pando.sock"], Dir.glob("*.sock", base: @server.folder).sort)
  end

  private

  def get(socket)
    socket.write("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
    head = socket.gets("\r\n\r\n")
    socket.read(head[/^content-length: (\d+)/i, 1].to_i)
    head
  end

  def refused?(port)
    TCPSocket.new("127.0.0.1", port).close
    false
  rescue Errno::ECONNREFUSED
    true
  end
end
