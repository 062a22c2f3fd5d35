# frozen_string_literal: true

require_relative "../config/config_test_case"
require "socket"
require "stringio"
require "pando/cli"

# Which server a command is for, where config/pando.rb and config/swarm.rb may each have one.
class CLIServerChoiceTest < ConfigTestCase
  def test_a_command_does_not_guess_between_two_servers_that_run
    write("config/pando.rb", "workers 2")
    write("config/swarm.rb", "node(:own) { 1 }")
    listening("tmp/pando.sock", "tmp/swarm.sock") do
      %w[stop status dashboard history].each do |command|
        assert_equal ["", "pando: two servers run in this folder: say which one you mean, with " \
                          "-c config/pando.rb or -c config/swarm.rb\n", 2], pando(command)
      end
    end
    %w[pando swarm].each do |name|
      assert_includes pando("stop", "-c", "config/#{name}.rb")[1], "no server listens at #{@dir}/tmp/#{name}.sock."
    end
    assert_includes pando("stop", "--control", "tmp/any")[1], "no server listens at #{@dir}/tmp/any."
  end

  def test_of_two_servers_a_command_is_for_the_one_that_runs
    write("config/pando.rb", "workers 2")
    write("config/swarm.rb", "node(:own) { 1 }")
    %w[pando swarm].each do |name|
      listening("tmp/#{name}.sock") do
        assert_equal "pando: of the two servers of this folder, that of config/#{name}.rb runs",
                     pando("history")[1].lines(chomp: true).first
      end
    end
    assert_includes pando("stop")[1], "no server listens at #{@dir}/tmp/pando.sock."
  end

  def test_a_command_finds_the_server_of_job_nodes_where_no_other_runs
    write("config/swarm.rb", "node(:own) { 1 }")
    FileUtils.mkdir_p(File.join(@dir, "tmp"))
    assert_includes pando("scale", "2")[1], "no server listens at #{@dir}/tmp/swarm.sock."

    listening("tmp/pando.sock", "tmp/swarm.sock") do # that of a server without a config file
      assert_equal "pando: two servers run in this folder: say which one you mean, with " \
                   "--control #{@dir}/tmp/pando.sock or -c config/swarm.rb\n", pando("scale", "2")[1]
    end
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
