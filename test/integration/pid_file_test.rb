# frozen_string_literal: true

require "test_helper"
require "tmpdir"
require "pando/cli/control_client"
require "support/servers"

# Releases in folders of their own share a pidfile. A mistaken second start from another folder changes nothing.
class PidFileTest < Minitest::Test
  include Support::Servers

  def setup
    @shared = Dir.mktmpdir("pando-shared")
    @path = File.join(@shared, "server.pid")
    @config = "pidfile #{@path.dump}\ncontrol #{File.join(@shared, "control.sock").dump}\nworkers 1\n"
    @first = serve(config: @config)
  end

  def teardown
    super
    FileUtils.rm_rf(@shared)
  end

  def test_where_the_address_is_taken
    refused(@config.sub("control.sock", "another.sock"), "unix:#{@first.socket_path}")
  end

  def test_where_the_control_socket_is_taken
    refused(@config, nil)
  end

  # The first server's own file is what it removes at its end.
  def test_the_file_is_there_while_the_server_runs
    assert_equal("#{@first.pid}\n", File.read(@path))
    @first.stop

    refute_path_exists(@path)
  end

  def test_an_upgrade_goes_on_where_it_cannot_be_written_any_more
    folder = File.join(@shared, "gone")
    FileUtils.mkdir(folder)
    server = serve(config: "pidfile #{File.join(folder, "server.pid").dump}\nworkers 1\ncontrol 'control.sock'")
    FileUtils.rm_rf(folder)
    control = Pando::CLI::ControlClient.new(File.join(server.folder, "control.sock"))
    server.wait_for("pidfile.unavailable") { control.ask("upgrade", {}, timeout: 60) { |*| nil } }

    assert_equal(200, server.get("/").status)
    assert_empty(server.events("upgrade.failed"))
  end

  private

  def refused(config, listen)
    second = serve(config: config, listen: listen, ready: false)

    refute_predicate(second.wait_for_exit, :success?)
    assert_match(/another process listens|already/, second.output)
    assert_equal("#{@first.pid}\n", File.read(@path))
    assert_equal(200, @first.get("/").status)
  end
end
