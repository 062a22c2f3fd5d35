# frozen_string_literal: true

require "test_helper"
require "English"
require "fiddle"
require "pando/sys"
require "socket"
require "support/c_program"
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
      2.times { Sys.watch_crashes }
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

  # Its handler comes later than Pando's, and so gets the signal first.
  def test_a_fault_that_a_library_repairs_is_no_crash
    install, fault = library
    status = process { install.call && leave(fault.call) }

    assert_equal 1, status.exitstatus
    assert_equal :wait_readable, heard
    assert_ended_by(:SEGV, process { install.call && fault.call && crash })
    assert_equal "it crashes", heard
  end

  # The forked process does not put its handler before that of the library.
  def test_a_fault_that_a_library_has_repaired_since_before_the_fork
    install, fault = library
    status = process do
      install.call
      Process.wait(fork { Sys.announce_crash(@theirs, "the child crashes") && leave(fault.call) })
      leave($CHILD_STATUS.exitstatus)
    end

    assert_equal 1, status.exitstatus
    assert_equal :wait_readable, heard
  end

  # A process that had a lower priority already keeps it. Here the library repairs the fault after Pando's handler.
  def test_the_report_is_written_at_a_lower_priority
    install, fault = library
    before = [Process.getpriority(Process::PRIO_PROCESS, 0), 19]
    after = before.map do |nice|
      in_child do
        Process.setpriority(Process::PRIO_PROCESS, 0, nice)
        install.call && Sys.watch_crashes && Sys.announce_crash(@theirs, "it crashes") && fault.call
        Process.getpriority(Process::PRIO_PROCESS, 0)
      end
    end

    assert_equal ["it crashes"] * 2, [heard, heard]
    assert_equal(before.map { |nice| [nice + 5, 19].min }, after)
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

  # @return [Array<Fiddle::Function>]
  def library
    library = Fiddle.dlopen(Support::CProgram.library("repaired_fault"))
    %w[install_repair fault].map { |name| Fiddle::Function.new(library[name], [], Fiddle::TYPE_INT) }
  end

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
