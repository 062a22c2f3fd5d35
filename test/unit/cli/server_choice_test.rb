# frozen_string_literal: true

require_relative "../config/config_test_case"
require "socket"
require "stringio"
require "pando/cli"

# Which server a command is for, where config/pando.rb and config/swarm.rb may each have one.
class CLIServerChoiceTest < ConfigTestCase
  def both
    write("config/pando.rb", "workers 2")
    write("config/swarm.rb", "node(:own) { 1 }")
  end

  def test_a_command_does_not_guess_while_the_nodes_run
    both
    ["tmp/swarm.sock", %w[tmp/pando.sock tmp/swarm.sock]].each do |sockets|
      listening(*sockets) do
        %w[stop status dashboard history].each do |command|
          assert_equal ["", "pando: the server of config/swarm.rb runs in this folder, too: say which one you mean, " \
                            "with -c config/pando.rb or -c config/swarm.rb\n", 2], pando(command)
        end
      end
    end
    %w[pando swarm].each do |name|
      assert_includes pando("stop", "-c", "config/#{name}.rb")[1], "no server listens at #{@dir}/tmp/#{name}.sock."
    end
  end

  def test_otherwise_it_is_for_the_web_server
    both
    listening("tmp/other.sock") do
      assert_includes pando("stop")[1], "no server listens at #{@dir}/tmp/pando.sock."
    end
  end

  def test_a_flag_names_the_server
    both
    listening("tmp/swarm.sock") do
      assert_includes pando("stop", "--control", "tmp/any")[1], "no server listens at #{@dir}/tmp/any."
      assert_includes pando("history", "--control", "tmp/any")[1], "admin"
    end
  end

  def test_two_files_with_one_socket_have_one_server
    write("config/pando.rb", "control 'tmp/one.sock'")
    write("config/swarm.rb", "control 'tmp/one.sock'\nnode(:own) { 1 }")
    listening("tmp/one.sock") { assert_includes pando("history")[1], "admin" }
  end

  def test_nodes_whose_file_cannot_be_read_here_run_elsewhere
    both
    write("config/swarm.rb", "ENV.fetch('QUEUES')")
    FileUtils.mkdir_p(File.join(@dir, "tmp"))

    assert_includes pando("stop")[1], "no server listens at #{@dir}/tmp/pando.sock."
  end

  def test_the_server_of_job_nodes_where_there_is_no_other
    write("config/swarm.rb", "node(:own) { 1 }")
    FileUtils.mkdir_p(File.join(@dir, "tmp"))

    assert_includes pando("scale", "2")[1], "no server listens at #{@dir}/tmp/swarm.sock."
  end

  private

  # @return [Array(String, String, Integer)] stdout, stderr and the status
  def pando(*arguments)
    out = StringIO.new
    err = StringIO.new
    status = Dir.chdir(@dir) { Pando::CLI.run(arguments, out: out, err: err, env: {}) }
    [out.string, err.string, status]
  end

  def listening(*paths)
    FileUtils.mkdir_p(File.join(@dir, "tmp"))
    listeners = paths.map { |path| UNIXServer.new(File.join(@dir, path)) }
    yield
  ensure
    listeners&.each { |listener| File.unlink(listener.path) && listener.close }
  end
end
