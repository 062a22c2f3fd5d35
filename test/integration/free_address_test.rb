# frozen_string_literal: true

require "test_helper"
require "securerandom"
require "support/servers"

# Promise: after kill -9 of the monitor another server can have the address at once, whichever of its processes live on:
# a worker with its request, a service, a process that the application has started.
class FreeAddressTest < Minitest::Test
  include Support::Servers

  parallelize_me! # they wait most of the time

  APP = <<~RUBY
    def survivor(pid)
      File.write("pid", pid)
      File.rename("pid", "survivor")
    end

    run lambda { |env|
      case env["PATH_INFO"]
      when "/spawn" then survivor(Process.spawn("exec sleep 600"))
      when "/fork" then survivor(fork { sleep 600 })
      when "/request" then survivor(Process.pid) && sleep
      end
      [200, {}, ["fine"]]
    }
  RUBY
  CONFIG = <<~RUBY
    workers 2
    refork :manual
    timeout 600, grace: 60
    service(:asleep) { |_service| sleep }
  RUBY

  def teardown
    super
    Process.kill("KILL", @survivor) if @survivor
  rescue Errno::ESRCH
    nil # as it should be
  end

  { "behind_the_reactor" => "", "in_direct_mode" => "reactor false\n" }.each do |name, mode|
    %w[request spawn fork].each do |what|
      define_method("test_a_port_#{name}_while_a_#{what}_lives") { assert_free("127.0.0.1:#{free_port}", what, mode) }
      define_method("test_a_unix_socket_#{name}_while_a_#{what}_lives") { assert_free(nil, what, mode) }
    end
  end

  # It is free when nobody has the socket, and so the reactor must be the only one.
  def test_an_abstract_name_behind_the_reactor
    assert_free("unix:@pando-test-#{SecureRandom.hex(8)}", "fork", "")
  end

  private

  # @param listen [String, nil] nil: the socket that clients of these tests know
  def assert_free(listen, what, mode)
    server = serve(app: APP, config: CONFIG + mode, arguments: listen ? ["-l", listen] : [])
    address = listen || "unix:#{server.socket_path}"
    outlive(server, what)
    wait_until(message: "nobody is let in") { refused?(address) }
    serve(app: APP, config: mode, listen: address).wait_past("server.ready")

    assert_equal 1, Process.kill(0, @survivor), "it was to show that it disturbs nobody"
  end

  # Kills the monitor when there is a process that lives on.
  def outlive(server, what)
    client = server.connect
    client.write("GET /#{what} HTTP/1.1\r\nHost: localhost\r\n\r\n")
    path = File.join(server.folder, "survivor")
    wait_until { File.exist?(path) }
    @survivor = Integer(File.read(path))
    Process.kill("KILL", server.pid)
  end

  def refused?(address)
    connect(address).close
    false
  rescue Errno::ECONNREFUSED
    true
  rescue Errno::ECONNRESET, Errno::EAGAIN
    false # of the clients that were let in a moment ago
  end

  def connect(address)
    return UNIXSocket.new(address.delete_prefix("unix:").sub(/\A@/, "\0")) if address.start_with?("unix:")

    TCPSocket.new(*address.split(":"), connect_timeout: 1)
  end
end
