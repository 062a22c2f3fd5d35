# frozen_string_literal: true

require "test_helper"
require "fiddle"
require "pando/sys"
require "socket"
require_relative "support/in_child"

class SysCrashTest < Minitest::Test
  include SysSupport::InChild

  Sys = Pando::Sys
  MOST = 64 # bytes of a record

  def setup
    @ours, @theirs = UNIXSocket.pair(:SEQPACKET)
  end

  def teardown
    [@ours, @theirs].each(&:close)
  end

  # A process that has asked for it. What Ruby writes about the crash is not to be seen.
  # @return [Process::Status]
  def process
    Process.wait2(fork do
      [$stdout, $stderr].each { |io| io.reopen(File::NULL) }
      Sys.announce_crash(@theirs, "one")
      Sys.announce_crash(@theirs, "it crashes")
      yield
      leave
    end).last
  end

  # The kernel may deliver the signal to another thread, a moment later.
  def crash(signal = :SEGV) = Process.kill(signal, Process.pid) && sleep(10)
  def heard = @ours.recv_nonblock(MOST, exception: false)

  def test_a_crash_is_told_once_and_ends_the_process
    %i[SEGV BUS].each do |signal|
      assert_ended_by(signal, process { crash(signal) })
      assert_equal "it crashes", heard
      assert_equal :wait_readable, heard
    end
  end

  def test_a_real_one
    assert_predicate process { Fiddle::Pointer.new(8)[0] }, :signaled?
    assert_equal "it crashes", heard
  end

  def test_a_child_of_the_process_tells_nothing
    assert_predicate process { Process.wait(fork { crash }) }, :success?
    assert_equal :wait_readable, heard
  end

  # Ruby makes an exception of it.
  def test_a_stack_that_is_too_deep_is_no_crash
    status = process do
      deep = (1..200_000).inject([]) { |inner, _| [inner] }
      leave(3) if error_at { Marshal.dump(deep) } == SystemStackError
    end

    assert_equal 3, status.exitstatus
    assert_equal :wait_readable, heard
  end

  def test_nobody_listens
    @ours.close
    assert_ended_by(:SEGV, process { crash })
  ensure
    @ours, = UNIXSocket.pair
  end

  def test_the_words_have_a_bound
    assert(in_child { Sys.announce_crash(@theirs, "x" * MOST) })
    assert_equal("Errno::EINVAL", in_child { error_of { Sys.announce_crash(@theirs, "x" * (MOST + 1)) } })
  end

  private

  # Ruby 3.1 aborts then.
  def assert_ended_by(signal, status)
    assert_includes [signal, :ABRT].map { |name| Signal.list[name.to_s] }, status.termsig
  end

  def error_at
    yield
  rescue SystemStackError => e
    e.class
  end
end
