# frozen_string_literal: true

require "test_helper"
require "socket"
require "stringio"
require "tmpdir"
require "pando/cli"

# The output of a command if the server answers that it could not carry it out.
class RefusedCommandTest < Minitest::Test
  def setup
    @folder = Dir.mktmpdir
    @server = UNIXServer.new(File.join(@folder, "control.sock"))
    @thread = Thread.new { loop { answer(@server.accept) } }
  end

  def teardown
    @thread.kill.join
    @server.close
    FileUtils.remove_entry(@folder)
  end

  [%w[status], %w[status --format json], %w[status --watch], %w[slow], %w[stack 1], %w[pages], %w[top --once],
   %w[events -f], %w[refork], %w[scale 2]].each do |arguments|
    define_method("test_#{arguments.join("_")}") do
      out = StringIO.new
      err = StringIO.new
      status = Pando::CLI.run([*arguments, "--control", @server.path], out: out, err: err, env: {})

      assert_equal([1, "", "pando: too many open files\n"], [status, out.string, err.string])
    end
  end

  def test_a_reason_of_the_app_does_not_steer_the_terminal
    @reason = "\e]0;x%07%0Aa%C2%9B2J%20C:\\x"
    %w[reload status].each do |name|
      err = StringIO.new
      Pando::CLI.run([name, "--control", @server.path], out: StringIO.new, err: err, env: {})

      assert_equal("pando: \\e]0;x\\x07\na\\x9B2J C:\\x\n", err.string)
    end
  end

  def test_a_wait_that_ends_does_not_end_the_command
    @silent = true
    @progress = ["event name=monitor.stopping"]
    err = StringIO.new

    assert_equal(1, Pando::CLI.run(["stop", "--wait", "0.2", "--control", @server.path], out: err, err: err, env: {}))
    assert_equal("pando: there was no answer within 0.2 s; the server continues with `stop` (last event: " \
                 "monitor.stopping). See pando status\n", err.string.lines.last)
  ensure
    @held&.close
  end

  # pando reload 2>&1 | head -1
  def test_a_command_whose_output_nobody_reads_waits_for_its_outcome
    @progress = ["event name=reload.started", "waiting reason=anything"]
    reader, writer = IO.pipe
    reader.close
    %w[reload refork].each do |name|
      assert_equal 1, Pando::CLI.run([name, "--control", @server.path], out: writer, err: writer, env: {})
    end
  ensure
    writer&.close
  end

  private

  def answer(client)
    client.gets
    client.puts(@progress) if @progress
    return @held = client if @silent

    client.puts("failed reason=#{@reason || "too%20many%20open%20files"}")
  ensure
    client.close unless @held
  end
end
