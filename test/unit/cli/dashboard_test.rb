# frozen_string_literal: true

require "test_helper"
require "minitest/mock"
require "pando/cli"
require "pando/cli/dashboard"
require "open3"
require "socket"
require "support/checkout"
require "tmpdir"

# `pando dashboard`.
class DashboardCommandTest < Minitest::Test
  def setup
    @folder = Dir.mktmpdir("pando-dashboard")
    @servers = ["127.0.0.1", "::1"].to_h { |host| [host, TCPServer.new(host, 0)] }
  end

  def port(host = "127.0.0.1") = @servers[host].local_address.ip_port

  def teardown
    @servers.each_value(&:close)
    FileUtils.rm_rf(@folder)
  end

  # @return [Array(Integer, String, String)] status, stdout, stderr
  def pando(config, env = {})
    File.write("#{@folder}/pando.rb", config)
    text, said, status = Open3.capture3(env, *Support::Checkout.pando("dashboard", "-c", "pando.rb"), chdir: @folder)
    [status.exitstatus, text, said]
  end

  def test_the_token_of_the_control_socket
    File.write("#{@folder}/c.sock.token", "0123456789abcdef\n")

    assert_equal([0, "http://127.0.0.1:#{port}/dashboard#token=0123456789abcdef\n", ""],
                 pando("control \"c.sock\"\nadmin \"0.0.0.0:#{port}\"\n"))
  end

  def test_the_token_of_a_variable
    status, text, = pando("admin \"[::1]:#{port("::1")}\", token_env: \"SECRET\"\n", { "SECRET" => "0123456789abcdef" })

    assert_equal([0, "http://[::1]:#{port("::1")}/dashboard#token=0123456789abcdef\n"], [status, text])
  end

  def test_without_a_token_the_page_can_be_read
    status, text, said = pando("control \"c.sock\"\nadmin \"127.0.0.1:#{port}\"\n")

    assert_equal([0, "http://127.0.0.1:#{port}/dashboard\n"], [status, text])
    assert_match(/there is no token yet.*c\.sock\.token cannot be read/, said)
  end

  def test_a_token_of_another_user
    File.write("#{@folder}/c.sock.token", "0123456789abcdef\n")
    config = Pando::Config.load(["--control", "#{@folder}/c.sock"], dir: @folder)
    client = Pando::CLI::AdminClient.new(config, {})
    assert_nil(client.secrecy)
    File.stub(:open, ->(path) { raise Errno::EACCES, path }) do
      assert_equal("only root and the server's own user can read the token in #{@folder}/c.sock.token", client.secrecy)
    end
  end

  def test_without_a_server
    closed = port.tap { @servers["127.0.0.1"].close }

    assert_equal([2, "", "pando: no server answers at 127.0.0.1:#{closed} (Connection refused). Start it, or reload " \
                         "it if the line `admin` is new\n"], pando("admin \"127.0.0.1:#{closed}\"\n"))
  end

  def test_no_address_that_a_browser_can_open
    assert_match(/needs an admin address: write admin "127.0.0.1:9394"/, pando("control \"c.sock\"\n").last)
    assert_match(/a browser cannot open a unix socket/, pando("admin \"unix:a.sock\"\n").last)
  end
end
