# frozen_string_literal: true

require "test_helper"
require "fcntl"
require "fileutils"
require "rbconfig"
require "socket"
require "support/servers"

# Sockets that somebody else has opened, as systemd does (sd_listen_fds(3)), are served, and are his before and after.
class SocketActivationTest < Minitest::Test
  include Support::Servers

  # Does what systemd does between fork and exec: the descriptors from 3 on, and what tells of them.
  ACTIVATE = <<~RUBY
    numbers, names, *command = ARGV
    numbers = numbers.split(",").map(&:to_i)
    environment = { "LISTEN_PID" => Process.pid.to_s, "LISTEN_FDS" => numbers.size.to_s, "LISTEN_FDNAMES" => names }
    exec(environment, *command, numbers.each_with_index.to_h { |number, place| [3 + place, number] }.merge(close_others: true))
  RUBY

  # The port that the listener has, and how many variables tell the application of sockets.
  APP = <<~'RUBY'
    run lambda { |env|
      [200, {}, ["#{env["SERVER_PORT"]} #{ENV.keys.grep(/LISTEN_|NOTIFY/).size}"]]
    }
  RUBY

  MODES = { "behind_the_reactor" => true, "in_direct_mode" => false }.freeze

  def setup
    @folder = Dir.mktmpdir("pando-activation")
    @sockets = []
  end

  def teardown
    super
    @sockets.each(&:close)
    FileUtils.rm_rf(@folder)
  end

  def tcp = opened(TCPServer.new("127.0.0.1", 0))
  def unix = opened(UNIXServer.new(unix_path))
  def unix_path = File.join(@folder, "web.sock")

  def opened(socket)
    socket.close_on_exec = false
    socket.fcntl(Fcntl::F_SETFL, 0) # a process that waits for a connection blocks in it: the test has to change that
    socket.listen(64)
    @sockets << socket
    socket
  end

  def activate(*sockets, config: "", names: sockets.map { "web.socket" }, **options)
    wrapper = [RbConfig.ruby, "--disable=gems", "-e", ACTIVATE, sockets.map(&:fileno).join(","), names.join(":")]
    config = "workers 2\nrefork :manual\n#{config}"
    @server = serve(app: APP, config: config, listen: false, wrapper: wrapper, **options)
  end

  def ask(socket)
    socket.write("GET / HTTP/1.0\r\n\r\n")
    answer = socket.read
    answer[%r{\AHTTP/1.1 200 .*\r\n\r\n(\d+ \d+)\z}m, 1] || answer
  ensure
    socket.close
  end

  def ask_tcp(socket) = ask(TCPSocket.new("127.0.0.1", socket.addr[1]))
  def opened_by_the_server = @server.events("listener.opened").map { |one| one.values_at("listen", "inherited") }

  MODES.each do |mode, reactor|
    define_method(:"test_sockets_are_served_and_left_as_they_were_#{mode}") do
      web = tcp
      local = unix
      activate(web, local, config: <<~RUBY)
        reactor #{reactor}
        listen "127.0.0.1:#{web.addr[1]}"
        listen "unix:#{unix_path}"
      RUBY

      assert_equal("#{web.addr[1]} 0", ask_tcp(web))
      assert_equal("80 0", ask(UNIXSocket.new(unix_path)))
      assert_equal([["127.0.0.1:#{web.addr[1]}", true], ["unix:#{unix_path}", true]], opened_by_the_server)
      assert_predicate(@server.stop, :success?)
      assert_still_open(web)
      assert_path_exists(unix_path)
    end
  end

  # A client that connects after the end waits for the next start of the server.
  def assert_still_open(socket)
    client = TCPSocket.new("127.0.0.1", socket.addr[1])
    accepted = socket.wait_readable(90) && socket.accept
    assert(accepted)
  ensure
    [client, accepted].compact.each(&:close)
  end

  def test_without_a_listen_line_all_are_served
    web = tcp
    activate(web)

    assert_equal("#{web.addr[1]} 0", ask_tcp(web))
    assert_equal([["127.0.0.1:#{web.addr[1]}", true]], opened_by_the_server)
  end

  def test_by_name
    web = tcp
    other = tcp
    activate(web, other, names: %w[web other], config: 'listen "systemd:web"')

    assert_equal("#{web.addr[1]} 0", ask_tcp(web))
    assert_equal({ "listen" => "127.0.0.1:#{other.addr[1]}", "name" => "other" },
                 @server.wait_past("listener.unused").slice("listen", "name"))
  end

  def test_a_line_that_no_socket_is_for
    activate(tcp, names: ["web"], config: 'listen "systemd:admin"', ready: false)

    assert_equal(1, @server.wait_for_exit.exitstatus)
    assert_match(/cannot listen on systemd:admin: it has handed us no such socket/, @server.output)
  end

  def test_sockets_of_another_process_are_not_ours
    server = serve(app: APP, env: { "LISTEN_PID" => "1", "LISTEN_FDS" => "1" })

    assert_equal("80 0", server.request("GET", "/", "Host" => "localhost").body)
  end

  def test_a_reload_gives_one_up_and_takes_it_again
    web = tcp
    line = "listen \"127.0.0.1:#{web.addr[1]}\"\n"
    activate(web, config: "listen \"unix:own.sock\"\n#{line}")
    reload("listen \"unix:own.sock\"\n")
    assert_equal(["127.0.0.1:#{web.addr[1]}"], @server.events("listener.closed").map { |one| one["listen"] })
    reload("listen \"unix:own.sock\"\n#{line}")

    assert_equal("#{web.addr[1]} 0", ask_tcp(web))
    assert_predicate(@server.stop, :success?)
    assert_still_open(web)
  end

  # What Debian's systemd brings for tests of this kind.
  def test_under_systemd_socket_activate
    program = "/usr/bin/systemd-socket-activate"
    skip "no #{program} here" unless File.executable?(program)
    port = free_port
    @server = serve(app: APP, config: "workers 1", listen: false, ready: false,
                    wrapper: [program, "--listen=127.0.0.1:#{port}", *of_this_ruby])
    answer = nil
    wait_until { answer = ask(TCPSocket.new("127.0.0.1", port)) rescue nil } # rubocop:disable Style/RescueModifier

    assert_equal("#{port} 0", answer)
  end

  private

  # It passes nothing else on.
  def of_this_ruby = ENV.keys.grep(/\A(GEM_|BUNDLE|RUBY|HOME|PATH)/).map { |name| "--setenv=#{name}" }

  def free_port = TCPServer.open("127.0.0.1", 0) { |socket| socket.addr[1] }

  def reload(lines)
    @server.write("pando.rb", "log_format :json; rollout canary: false\nworkers 2\nrefork :manual\n#{lines}")
    @server.wait_for("reload.finished") { @server.signal("HUP") }
  end
end
