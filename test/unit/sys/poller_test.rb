# frozen_string_literal: true

require "test_helper"
require "fcntl"
require "socket"
require "pando/sys"
require_relative "support/in_child"

class SysPollerTest < Minitest::Test
  include SysSupport::InChild

  Sys = Pando::Sys

  def setup
    @poller = Sys::Poller.new
    @reader, @writer = IO.pipe
  end

  def teardown
    @poller.close
    [@reader, @writer].each(&:close)
  end

  def clock = Process.clock_gettime(Process::CLOCK_MONOTONIC)

  def test_the_subject_of_what_is_ready
    subject = Object.new
    other = IO.pipe
    @poller.add(@reader, subject).add(other.first, :other)
    @writer.syswrite("x")

    assert_equal [subject], @poller.wait(PATIENCE)
    assert_equal [subject], @poller.wait(nil)
    @reader.readpartial(1)
    assert_empty @poller.wait(0)
  ensure
    other.each(&:close)
  end

  def test_the_end_of_a_pipe_is_ready_too
    @poller.add(@reader, :reader)
    @writer.close

    assert_equal [:reader], @poller.wait(PATIENCE)
  end

  def test_a_timeout_is_never_shorter_than_asked
    started = clock

    assert_empty @poller.add(@reader, :reader).wait(0.0101)
    assert_operator clock - started, :>=, 0.0101
    assert_empty @poller.wait(-1)
    assert_empty @poller.wait(Float::NAN)
  end

  # The event is there before the exception, which finds the wait in the kernel.
  def test_an_exception_costs_no_edge
    error = Class.new(StandardError)
    previous = trap("USR1") { raise error }
    @poller.add(@reader, :reader, :edge)
    waiting = Thread.current
    other = Thread.new do
      Thread.pass until waiting.status == "sleep"
      @writer.write_nonblock("x")
      Process.kill(:USR1, Process.pid)
    end
    assert_raises(error) { @poller.wait(PATIENCE) && other.join }

    assert_equal [:reader], @poller.wait(PATIENCE)
    assert_empty @poller.wait(0)
  ensure
    other&.join
    trap("USR1", previous)
  end

  def test_the_longest_timeout_is_cut_not_wrapped
    @writer.syswrite("x")

    assert_equal [:reader], @poller.add(@reader, :reader).wait(1e300)
  end

  def test_what_was_removed_is_not_told
    @poller.add(@reader, :reader)
    @writer.syswrite("x")
    @poller.remove(@reader)

    assert_empty @poller.wait(0)
    assert_same @poller, @poller.remove(@reader)
  end

  def test_a_number_that_is_used_again_has_its_own_subject
    number = @reader.fileno
    @poller.add(@reader, :old)
    @poller.remove(@reader)
    @reader.close
    @reader, @writer = reuse(number, @writer)
    @poller.add(@reader, :new)
    @writer.syswrite("x")

    assert_equal number, @reader.fileno
    assert_equal [:new], @poller.wait(PATIENCE)
  end

  def test_what_cannot_be_watched
    @poller.add(@reader, :reader)
    assert_raises(Errno::EEXIST) { @poller.add(@reader, :again) }
    assert_raises(Errno::EBADF) { @poller.add(9999, :nothing) }
    File.open(__FILE__) { |file| assert_raises(Errno::EPERM) { @poller.add(file, :file) } }
    @writer.close
    assert_raises(IOError) { @poller.add(@writer, :closed) }
    assert_equal [:reader], @poller.wait(PATIENCE)
  end

  def test_many_at_once_all_have_their_turn
    pipes = Array.new(150) { IO.pipe }
    pipes.each_with_index { |pipe, index| @poller.add(pipe.first, index) && pipe.last.syswrite("x") }
    seen = Array.new(3) { @poller.wait(0) }.flatten.uniq

    assert_equal [*0...150], seen.sort
  ensure
    pipes.flatten.each(&:close)
  end

  def test_exclusive_is_told_to_the_kernel
    @poller.add(@reader, :reader, :exclusive)
    other = IO.pipe
    @poller.add(other.first, :other)
    masks = registrations

    assert_equal 0x10000000, masks.fetch(@reader.fileno) & 0x10000000
    assert_equal 0, masks.fetch(other.first.fileno) & 0x10000000
    @writer.syswrite("x")
    assert_equal [:reader], @poller.wait(PATIENCE)
  ensure
    other.each(&:close)
  end

  def test_an_edge_is_told_of_once
    @poller.add(@reader, :reader, :edge)
    2.times do
      @writer.syswrite("x")
      assert_equal [[:reader], []], [@poller.wait(PATIENCE), @poller.wait(0)]
    end
  end

  def test_no_other_manner
    assert_raises(ArgumentError) { @poller.add(@reader, :reader, :other) }
    assert_raises(TypeError) { @poller.add(@reader, :reader, true) }
  end

  def test_other_threads_run_meanwhile
    @poller.add(@reader, :reader)
    thread = Thread.new { @writer.syswrite("x") }

    assert_equal [:reader], @poller.wait(PATIENCE)
    thread.join
  end

  def test_a_signal_ends_the_wait
    ready, trapped = in_child do
      trapped = false
      trap("USR1") { trapped = true }
      target = Process.pid
      pest = fork { Process.kill("USR1", target) while sleep(0.01) }
      ready = Sys::Poller.new.add(@reader, :reader).wait(PATIENCE)
      Process.kill(:KILL, pest)
      [ready, trapped]
    end

    assert_equal [[], true], [ready, trapped]
  end

  def test_a_thread_that_waits_can_be_killed
    @poller.add(@reader, :reader)
    thread = Thread.new { @poller.wait(nil) }
    wait_until { thread.stop? }
    thread.kill

    assert thread.join(PATIENCE)
  end

  def test_a_child_drops_its_copy_and_the_parent_keeps_its_own
    @poller.add(@reader, :reader)
    error = in_child do
      @poller.close
      @poller.close
      error_of { @poller.wait(0) }
    end
    @writer.syswrite("x")

    assert_equal "IOError", error
    assert_equal [:reader], @poller.wait(PATIENCE)
  end

  def test_a_closed_poller_does_nothing
    @poller.close
    assert_raises(IOError) { @poller.add(@reader, :reader) }
    assert_raises(IOError) { @poller.remove(@reader) }
    assert_raises(IOError) { @poller.wait(0) }
    assert_raises(IOError) { Sys::Poller.allocate.wait(0) }
  end

  def test_a_poller_that_is_forgotten_closes_its_descriptor
    before, after = in_child do
      before = open_descriptors
      50.times { Sys::Poller.new }
      wait_until do
        GC.start
        Array.new(100) { Object.new }
        open_descriptors < before + 10
      end
      [before, open_descriptors]
    end

    assert_operator after, :<, before + 10
  end

  def test_a_poller_is_not_inherited_by_programs
    assert_match(/^flags:\s+02\d*$/, File.read("/proc/self/fdinfo/#{epoll_number}"))
  end

  def test_subjects_live_as_long_as_they_are_watched
    pipes = Array.new(20) { IO.pipe }
    pipes.each_with_index { |pipe, index| @poller.add(pipe.first, "subject #{index}") }
    collect
    pipes.each { |pipe| pipe.last.syswrite("x") }

    assert_equal Array.new(20) { |index| "subject #{index}" }.sort, @poller.wait(0).sort
  ensure
    pipes.flatten.each(&:close)
  end

  def test_it_works_while_the_collector_runs_all_the_time
    ready = in_child do
      GC.stress = true
      poller = Sys::Poller.new.add(@reader, "subject".dup)
      @writer.syswrite("x")
      ready = poller.wait(PATIENCE)
      poller.remove(@reader)
      GC.stress = false
      ready + poller.wait(0)
    end

    assert_equal ["subject"], ready
  end

  private

  def collect
    Array.new(10_000) { "garbage".dup }
    GC.start
    GC.compact if GC.respond_to?(:compact)
  end

  # The poller of this test is the one that was made last.
  def epoll_number
    numbers = Dir.children("/proc/self/fd").map(&:to_i).select do |fd|
      File.readlink("/proc/self/fd/#{fd}") == "anon_inode:[eventpoll]"
    rescue Errno::ENOENT
      false
    end
    numbers.find { |fd| File.read("/proc/self/fdinfo/#{fd}").match?(/^tfd:/) } || numbers.max
  end

  # @return [Hash{Integer => Integer}] descriptor => mask, see epoll_ctl(2) and proc(5)
  # Of this poller: others that nobody has collected yet may be open as well.
  def registrations
    epolls = Dir.children("/proc/self/fd").select { |number| epoll?(number) }
    lists = epolls.map { |number| File.read("/proc/self/fdinfo/#{number}").scan(/^tfd:\s+(\d+) events:\s+(\h+)/) }
    lists.map { |list| list.to_h { |fd, mask| [fd.to_i, mask.to_i(16)] } }.find { |one| one.key?(@reader.fileno) }
  end

  def epoll?(number)
    File.readlink("/proc/self/fd/#{number}") == "anon_inode:[eventpoll]"
  rescue Errno::ENOENT
    false # the listing's own
  end

  def reuse(number, writer)
    writer.close
    reader, writer = IO.pipe
    return reader, writer if reader.fileno == number

    [IO.for_fd(reader.fcntl(Fcntl::F_DUPFD, number)), writer].tap do |same, _|
      reader.close
      assert_equal(number, same.fileno)
    end
  end
end
