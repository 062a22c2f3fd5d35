# frozen_string_literal: true

require "test_helper"
require_relative "support/reactor_process"
require "fileutils"
require "open3"
require "tempfile"

# Pando::HTTP::ReactorProgram: the reactor as a program of its own, and as a fork where that cannot be.
class HTTPReactorProgramTest < Minitest::Test
  include HTTPSupport::ReactorProcess

  PROGRAM = Pando::HTTP::ReactorProgram

  def test_it_has_nothing_of_the_monitor
    ENV["OF_THE_MONITOR"] = "yes"
    start

    refute_predicate self, :ruby?
    assert_match(/\APANDO_REACTOR=\d+\0\z/, read("environ"))
    assert_equal "pando reactor\0", read("cmdline")
    assert_equal "pando reactor\n", read("comm")
  ensure
    ENV.delete("OF_THE_MONITOR")
  end

  def test_it_is_still_there_when_its_file_is_gone
    copy = copied(0o700)
    program = PROGRAM.new(@setup.descriptors.first, copy.path)
    copy.unlink
    @pid = program.start(*arguments)

    assert_ready
    refute_predicate self, :ruby?
  end

  def test_without_a_program_it_is_a_fork
    assert_forked("/nowhere", "No such file or directory @ rb_sysopen - /nowhere")
  end

  def test_without_leave_to_execute_it_is_a_fork
    assert_forked(copied(0o600).path, "Permission denied - exec (of the reactor)")
  end

  # Of another build say, or without a library that it needs.
  def test_a_program_that_ends_at_once_is_followed_by_a_fork
    program = PROGRAM.new(@setup.descriptors.first, "/bin/false")
    Process.wait(program.start(*arguments))
    events = record { @pid = program.start(*arguments) }

    assert_equal(["pando-reactor ended before it had begun"], events.map { |event| event[:reason] })
    assert_ready
    Process.kill("KILL", @pid)
    Process.wait(@pid)
    assert_empty(record { @pid = program.start(*arguments) }, "it is tried again")
  end

  def test_papers_of_anybody_else_are_refused
    [nil, "", "x", "2", "99999999999", "77"].each { |place| assert_refused("PANDO_REACTOR" => place) }
    ["", "x" * 100, "\0" * 1_000_000].each do |text|
      papers = Tempfile.new("papers").tap { |file| file.write(text) && file.flush }
      assert_refused({ "PANDO_REACTOR" => "9" }, 9 => papers)
    end
  end

  private

  def copied(mode)
    Tempfile.new("program").tap do |copy|
      FileUtils.cp(PROGRAM.path, copy.path)
      copy.chmod(mode)
      copy.close # else nobody could execute it, see execve(2)
    end
  end

  # Its own interpreter is linked into it, or a library.
  def ruby? = read("maps").match?(/libruby|#{Regexp.escape(RbConfig.ruby)}/)

  def launch(*arguments) = PROGRAM.new(@setup.descriptors.first).start(*arguments)

  # @return [Array<Pando::Event>]
  def record
    events = []
    subscription = Pando::Events.subscribe { |event| events << event }
    yield
    events
  ensure
    Pando::Events.unsubscribe(subscription)
  end

  def read(name) = File.read("/proc/#{@pid}/#{name}")

  def assert_forked(path, reason)
    events = record { @pid = PROGRAM.new(@setup.descriptors.first, path).start(*arguments) }

    assert_equal([["reactor.fallback", reason]], events.map { |event| [event.name, event[:reason]] })
    assert_ready
    assert_serves
  end

  def assert_refused(environment, options = {})
    output, status = Open3.capture2e(environment, PROGRAM.path, **options)

    assert_equal "pando reactor: only the pando monitor that it was built with can run it\n", output
    assert_equal 1, status.exitstatus
  end
end
