# frozen_string_literal: true

require "test_helper"
require "minitest/mock"
require "socket"
require "pando/measure"

# The load, against a server of the test's own, which is this process.
class MeasureContestTest < Minitest::Test
  Measure = Pando::Measure
  MIB = 1 << 20
  Group = Struct.new(:memory_left)
  # A subject that lives as long as the test.
  Subject = Struct.new(:name, :port, :tree) do
    def alive? = true
    def facts = {}
  end

  def setup
    @listener = TCPServer.new("127.0.0.1", 0)
    @server = Thread.new { loop { Thread.new(@listener.accept) { |socket| serve(socket) } } }
    @server.report_on_exception = false
  end

  def teardown
    @server.kill.join
    @listener.close
  end

  def test_all_requests_are_sent
    contest = contest().call

    assert_nil(contest.cut_short)
    assert_equal([[40, [200]]], contest.sides.map { |side| [side.answers.size, side.answers.map(&:status).uniq] })
  end

  # A kernel without that file, or one that keeps it secret: 0 MiB would be a figure.
  def test_without_the_memory_of_other_processes_nothing_is_measured
    error = Pando::Sys::Memory.stub(:usage, nil) { assert_raises(Measure::NotMeasured) { contest.call } }

    assert_match(%r{the kernel does not tell the memory of other processes: /proc/PID/smaps_rollup}, error.message)
  end

  # The master's alone would be a figure, too.
  def test_without_the_memory_of_the_workers_nothing_is_measured
    worker = Process.spawn("sleep", "1000")
    usage = Pando::Sys::Memory.method(:usage).to_proc
    known = ->(pid) { usage.call(pid) unless pid == worker }
    error = Pando::Sys::Memory.stub(:usage, known) do
      assert_raises(Measure::NotMeasured) { contest(/\Asleep 1000/).call }
    end

    assert_match(%r{/proc/PID/smaps_rollup}, error.message)
    assert_nil(contest(/\Asleep 1000/).call.cut_short)
  ensure
    Process.kill("KILL", worker)
    Process.wait(worker)
  end

  def test_the_load_ends_before_the_memory_of_the_container_does
    contest = Pando::Sys::ControlGroup.stub(:new, Group.new(100 * MIB)) { contest().call }

    assert_equal("only 100 MiB of the container's memory were left", contest.cut_short)
    assert_equal([20], contest.sides.map { |side| side.answers.size })
  end

  def test_the_load_ends_before_the_memory_of_the_machine_does
    left = Pando::Sys::Memory::Left.new(150 * MIB, :machine)
    contest = Pando::Sys::Memory.stub(:left, left) { contest().call }

    assert_equal("only 150 MiB of the machine's memory were left", contest.cut_short)
  end

  private

  # Two workers' requests in two slices.
  def contest(worker = //)
    plan = Measure::Plan.new(workers: 2, requests: 20, clients: 2, headers: {}, against: :none)
    rehearsal = Struct.new(:selection, :headers).new(Measure::Selection.of_root, {})
    subject = Subject.new("Pando", @listener.addr[1], Measure::ProcessTree.new(Process.pid, worker))
    Measure::Contest.new([subject], rehearsal, plan, proc {})
  end

  def serve(socket)
    socket.write("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n") while socket.gets("\r\n\r\n")
  rescue SystemCallError
    nil
  ensure
    socket.close
  end
end
