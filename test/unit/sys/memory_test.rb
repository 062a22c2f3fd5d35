# frozen_string_literal: true

require "test_helper"
require "fileutils"
require "minitest/mock"
require "rbconfig"
require "tmpdir"
require "pando/sys/memory"

# What /proc and the control groups tell of memory.
class SysMemoryTest < Minitest::Test
  Memory = Pando::Sys::Memory
  MIB = 1024**2

  # Small and alone: its memory changes by what it is told to take.
  GROW = <<~RUBY.freeze
    $stdout.sync = true
    puts
    gets
    ballast = "x" * #{32 * MIB}
    puts
    gets
  RUBY

  # Its child writes to what it has inherited.
  COPY = <<~RUBY.freeze
    $stdout.sync = true
    ballast = "x" * #{32 * MIB}
    child = fork do
      puts Process.pid
      gets
      0.step(ballast.bytesize - 1, 4096) { |at| ballast.setbyte(at, 0) }
      puts
      gets
    end
    Process.wait(child)
  RUBY

  def setup = @folder = Dir.mktmpdir
  def teardown = FileUtils.rm_rf(@folder)

  def test_what_a_process_writes_becomes_its_own
    process = IO.popen([RbConfig.ruby, "--disable-gems", "-e", GROW], "r+")
    pid = process.pid
    process.gets
    before = [Memory.usage(pid), Memory.minor_faults(pid), Memory.anonymous(pid)]
    process.puts
    process.gets
    after = [Memory.usage(pid), Memory.minor_faults(pid), Memory.anonymous(pid)]

    assert_in_delta(32 * MIB, after.first.private - before.first.private, 8 * MIB)
    assert_operator(after.first.pss, :>=, after.first.private)
    assert_operator((after[1] - before[1]) * Memory::PAGE, :>=, 30 * MIB)
    assert_in_delta(32 * MIB, after.last - before.last, 8 * MIB)
  ensure
    process&.close
  end

  def test_what_a_child_copies_of_its_parents_memory_is_not_more
    process = IO.popen([RbConfig.ruby, "--disable-gems", "-e", COPY], "r+")
    pid = Integer(process.gets)
    before = [Memory.usage(pid).private, Memory.anonymous(pid)]
    process.puts
    process.gets
    after = [Memory.usage(pid).private, Memory.anonymous(pid)]

    assert_in_delta(32 * MIB, after.first - before.first, 8 * MIB)
    assert_in_delta(before.last, after.last, 8 * MIB)
  ensure
    process&.close
  end

  def test_a_process_that_is_gone
    pid = fork { exit!(0) }
    Process.wait(pid)

    assert_nil(Memory.usage(pid))
    assert_nil(Memory.minor_faults(pid))
    assert_nil(Memory.anonymous(pid))
  end

  def test_what_may_be_used_is_the_least_of_the_groups_limit_and_the_machines_memory
    machine = write("machine", "MemTotal:      4194304 kB\nMemFree: 1 kB\n")

    { nil => 4096, 300 * MIB => 300, 2**50 => 4096 }.each do |limit, expected|
      assert_equal(expected * MIB, Memory.limit(group: Group.new(limit), machine: machine))
    end
    assert_operator(Memory.limit, :>, 64 * MIB)
  end

  # As under systemd's ProcSubset=pid, and on other systems than Linux.
  def test_the_machines_memory_is_known_without_its_file
    assert_operator(Memory.limit(group: Group.new, machine: "/nowhere"), :>, 64 * MIB)
    assert_equal(32 * MIB, Memory.limit(group: Group.new(32 * MIB), machine: "/nowhere"))
  end

  def test_it_may_not_be_known_at_all
    Etc.stub(:sysconf, nil) do
      assert_nil(Memory.limit(group: Group.new, machine: "/nowhere"))
      assert_equal(MIB, Memory.limit(group: Group.new(MIB), machine: "/nowhere"))
    end
  end

  # Either the system refuses the question, or this Ruby was built without the name for it.
  def test_it_is_not_known_where_the_c_library_cannot_be_asked
    [-> { raise Errno::ENOSYS }, -> { Etc::SC_NO_SUCH_NAME }].each do |failure|
      Etc.stub(:sysconf, ->(_) { failure.call }) do
        assert_nil(Memory.limit(group: Group.new, machine: "/nowhere"))
        assert_equal(MIB, Memory.limit(group: Group.new(MIB), machine: "/nowhere"))
      end
    end
  end

  def test_what_is_left_is_the_least_of_what_the_group_and_the_machine_have
    machine = write("machine", "MemTotal: 4194304 kB\nMemFree: 1 kB\nMemAvailable:   307200 kB\n")
    group = ->(left) { Group.new(nil, nil, left) }

    { nil => [300, :machine], 100 => [100, :group], 512 => [300, :machine] }.each do |left, (expected, place)|
      assert_equal([expected * MIB, place], Memory.left(group: group.call(left && (left * MIB)), machine: machine).to_a)
    end
    assert_equal([100 * MIB, :group], Memory.left(group: group.call(100 * MIB), machine: "/nowhere").to_a)
    assert_nil(Memory.left(group: group.call(nil), machine: "/nowhere"))
  end

  def test_pressure_is_the_groups_or_the_machines_whichever_is_more
    machine = write("pressure", "some avg10=1.50 avg60=0.00 avg300=0.00 total=0\nfull avg10=0.10 avg60=0.00 total=0\n")

    assert_in_delta(1.5, Memory.pressure(group: Group.new, machine: machine))
    assert_in_delta(1.5, Memory.pressure(group: Group.new(nil, 0.5), machine: machine))
    assert_in_delta(42.0, Memory.pressure(group: Group.new(nil, 42.0), machine: machine))
    assert_nil(Memory.pressure(group: Group.new, machine: "/nowhere"))
  end

  private

  # Stands for a control group.
  Group = Struct.new(:memory_limit, :memory_pressure, :memory_left)

  def write(name, text) = File.join(@folder, name).tap { |path| File.write(path, text) }
end
