# frozen_string_literal: true

require "test_helper"
require "pando/cli"
require "open3"
require "support/checkout"
require "tmpdir"

# `pando dashboard`.
class DashboardCommandTest < Minitest::Test
  def setup
    @folder = Dir.mktmpdir("pando-dashboard")
  end

  def teardown
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

    assert_equal([0, "http://127.0.0.1:9394/dashboard#token=0123456789abcdef\n", ""],
                 pando("control \"c.sock\"\nadmin \"0.0.0.0:9394\"\n"))
  end

  def test_the_token_of_a_variable
    status, text, = pando("admin \"[::1]:9394\", token_env: \"SECRET\"\n", { "SECRET" => "0123456789abcdef" })

    assert_equal([0, "http://[::1]:9394/dashboard#token=0123456789abcdef\n"], [status, text])
  end

  def test_without_a_token_the_page_can_be_read
    status, text, said = pando("control \"c.sock\"\nadmin \"127.0.0.1:9394\"\n")

    assert_equal([0, "http://127.0.0.1:9394/dashboard\n"], [status, text])
    assert_match(/there is no token yet.*c\.sock\.token cannot be read/, said)
  end

  def test_no_address_that_a_browser_can_open
    assert_match(/needs an admin address: write admin "127.0.0.1:9394"/, pando("control \"c.sock\"\n").last)
    assert_match(/a browser cannot open a unix socket/, pando("admin \"unix:a.sock\"\n").last)
  end
end
