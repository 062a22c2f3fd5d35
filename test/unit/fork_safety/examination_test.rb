# frozen_string_literal: true

require "test_helper"
require "fiddle"
require "tmpdir"
require "support/c_program"
require "pando/fork_safety/examination"

class ForkSafetyExaminationTest < Minitest::Test
  Examination = Pando::ForkSafety::Examination
  PATIENCE = 90 # seconds

  # A child stuck in the lock of a thread that it has not.
  def stuck_child
    library = Support::CProgram.library("held_lock")
    forker = fork do
      start, take = functions(library)
      start.call
      pid = fork { take.call }
      @pipe.last.syswrite("#{pid}\n")
      Process.wait(pid)
    ensure
      exit!(0)
    end
    child = @pipe.first.gets.to_i
    wait_until(timeout: PATIENCE) { File.read("/proc/#{child}/syscall").start_with?(/\d+ /) }
    yield child, forker
  ensure
    [child, forker].compact.each { |pid| Process.kill("KILL", pid) }
    Process.wait(forker)
  end

  def functions(library)
    handle = Fiddle.dlopen(library)
    %w[held_lock_start held_lock_take].map { |name| Fiddle::Function.new(handle[name], [], Fiddle::TYPE_INT) }
  end

  def setup
    @pipe = IO.pipe
  end

  def teardown
    @pipe.each(&:close)
  end

  def test_the_lock_and_its_owner
    stuck_child do |child, forker|
      text = nil # the next one may find it running, for a debugger lets it go on
      wait_until(timeout: PATIENCE) { (text = Examination.new(child).text).include?("waits for a lock") }

      assert_match(/\Athread #{child} \(.+\): waits for a lock/, text)
      assert_match(/the lock is at .*held_lock-\h+\.so\+0x\h+/, text)
      assert_match(/it was taken by thread \d+ \(flusher\) of process #{forker}, before the fork/, text)
    end
  end

  def test_without_a_debugger_the_libraries_on_its_stack
    path = ENV.fetch("PATH")
    stuck_child do |child, _|
      ENV["PATH"] = "/nonexistent"
      wait_until(timeout: PATIENCE, message: -> { Examination.new(child).text }) do
        Examination.new(child).text.match?(/on the stack of thread #{child}: .*held_lock-\h+\.so\+0x\h+/)
      end
    end
  ensure
    ENV["PATH"] = path
  end

  def test_a_debugger_that_takes_too_long_is_ended
    path = ENV.fetch("PATH")
    Dir.mktmpdir do |folder|
      File.write(File.join(folder, "eu-stack"), "#!/bin/sh\necho '#0 0x1 wait'\nsleep 1000\n", perm: 0o755)
      ENV["PATH"] = "#{folder}:#{path}"

      assert_equal(["native stack, by eu-stack:", "#0 0x1 wait"], Examination::Debugger.stack(Process.pid, 0.5))
    end
  ensure
    ENV["PATH"] = path
  end

  def test_a_process_that_is_not_there
    assert_match(/cannot be read/, Examination.new((2**22) + 1).text)
  end

  def test_addresses
    map = Examination::MemoryMap.new(<<~MAPS)
      1000-2000 r--p 00000000 fe:00 11 /lib/a b.so
      2000-3000 r-xp 00001000 fe:00 11 /lib/a b.so
      3000-4000 rw-p 00002000 fe:00 11 /lib/a b.so (deleted)
      4000-5000 rw-p 00000000 00:00 0
      800000-900000 rw-p 00000000 00:00 0 [heap]
    MAPS

    assert_equal(["/lib/a b.so+0x0", "/lib/a b.so+0x1010", "/lib/a b.so+0x3008"],
                 [0x1000, 0x2010, 0x4008].map { |address| map.name(address) })
    assert_equal([nil, nil], [0x10, 0x800000].map { |address| map.name(address) })
    assert_equal([false, true, false], [0x1000, 0x2000, 0x3000].map { |address| map.code?(address) })
  end
end
