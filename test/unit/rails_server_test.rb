# frozen_string_literal: true

require "test_helper"
require "fileutils"
require "socket"
require "tmpdir"
require "pando/cluster"
require "pando/rails_server"

# `bin/rails server -d` says what keeps the server from starting while it still has a terminal.
class RailsServerTest < Minitest::Test
  # As Rails::Server is, in what Pando asks of it.
  class Server
    attr_reader :options

    def initialize(options) = @options = options
    def server = Pando::RackHandler
    def create_tmp_directories = nil
    def setup_dev_caching = nil
    prepend Pando::RailsServer::Start
  end

  def setup
    @folder = File.realpath(Dir.mktmpdir("pando-rails-server"))
    @port = TCPServer.open("127.0.0.1", 0) { |free| free.addr[1] }
  end

  def teardown = FileUtils.remove_entry(@folder)

  def test_a_port_that_is_taken_is_told_before_it_detaches
    TCPServer.open("127.0.0.1", @port) do
      said, steps = start(Port: @port)

      assert_equal "pando: cannot listen on 127.0.0.1:#{@port}: another process listens there; stop it or choose " \
                   "another address\n", said
      assert_equal [1], steps
    end
  end

  def test_a_pidfile_of_a_server_that_runs
    pid = Process.spawn(["sleep", Pando::Cluster::Monitor::TITLE], "60", chdir: @folder)
    path = File.join(@folder, "server.pid")
    File.write(path, pid)
    said, steps = start(Port: @port, pid: path)

    assert_match(/\Apando: a server is already running \(pid #{pid}, file #{path}\)/, said)
    assert_equal [1], steps
  ensure
    Process.kill(:KILL, pid)
    Process.wait(pid)
  end

  def test_a_configuration_that_is_wrong
    FileUtils.mkdir_p(File.join(@folder, "config"))
    File.write(File.join(@folder, "config/pando.rb"), "no_such_setting 1\n")
    said, steps = start(Port: @port)

    assert_match(%r{\Apando: config/pando.rb:1: unknown setting no_such_setting}, said)
    assert_equal [1], steps
  end

  def test_a_server_that_can_start_detaches_and_leaves_nothing_behind
    path = File.join(@folder, "server.pid")
    said, steps = start(Port: @port, pid: path)

    assert_equal ["", %i[detached started]], [said, steps]
    refute_path_exists path
    TCPServer.open("127.0.0.1", @port, &:itself)
  end

  private

  # @return [Array(String, Array)] what it said, and what it did: its exit status, or :detached and :started
  def start(**options)
    steps = []
    options = { daemonize: true, Host: "localhost", environment: "production",
                user_supplied_options: %i[Port environment pid], **options }
    _, said = capture_io do
      Dir.chdir(@folder) { run_noting(steps, Server.new(options)) }
    rescue SystemExit => e
      steps << e.status
    end
    [said, steps]
  end

  def run_noting(steps, server)
    Pando::RailsServer.stub(:leave_terminal, -> { steps << :detached }) do
      Pando::RackHandler.stub(:run, ->(*, **) { steps << :started }) { server.start }
    end
  end
end
