# frozen_string_literal: true

require "test_helper"
require "fileutils"
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

  def setup = @folder = Dir.mktmpdir
  def teardown = FileUtils.rm_rf(@folder)

  def test_what_a_process_writes_becomes_its_own
    process = IO.popen([RbConfig.ruby, "--disable-gems", "-e", GROW], "r+")
    pid = process.pid
    process.gets
    before = [Memory.usage(pid), Memory.minor_faults(pid)]
    process.puts
    process.gets
    after = [Memory.usage(pid), Memory.minor_faults(pid)]

    assert_in_delta(32 * MIB, after.first.private - before.first.private, 8 * MIB)
    assert_operator(after.first.pss, :>=, after.first.private)
    assert_operator((after.last - before.last) * Memory::PAGE, :>=, 30 * MIB)
  ensure
    process&.close
  end

  def test_a_process_that_is_gone
    pid = fork { exit!(0) }
    Process.wait(pid)

    assert_nil(Memory.usage(pid))
    assert_nil(Memory.minor_faults(pid))
  end

  def test_the_least_of_all_limits_counts
    groups = write("groups", "0::/slice/shop\n")
    write("cgroup/slice/shop/memory.max", "max\n")
    write("cgroup/slice/memory.max", "#{256 * MIB}\n")

    assert_equal(256 * MIB, limit(groups))
    write("cgroup/slice/shop/memory.max", "#{128 * MIB}\n")
    assert_equal(128 * MIB, limit(groups))
    write("machine", "MemTotal:      65536 kB\n")
    assert_equal(64 * MIB, limit(groups))
  end

  def test_version_1
    groups = write("groups", "9:name=systemd:/\n4:cpu,memory:/docker/abc\n0::/\n")
    write("cgroup/memory/docker/abc/memory.limit_in_bytes", "#{200 * MIB}\n")

    assert_equal(200 * MIB, limit(groups))
  end

  def test_in_a_container_the_groups_path_is_one_of_the_hosts
    groups = write("groups", "0::/../../kubepods/abc\n")
    write("cgroup/memory.max", "#{300 * MIB}\n")

    assert_equal(300 * MIB, limit(groups))
  end

  def test_without_limit_or_group_it_is_the_machine
    assert_equal(4096 * MIB, limit("/nowhere"))
    assert_operator(Memory.limit, :>, 64 * MIB)
  end

  def test_pressure_is_the_groups_or_the_machines
    machine = write("pressure", "some avg10=1.50 avg60=0.00 avg300=0.00 total=0\nfull avg10=0.10 avg60=0.00 total=0\n")
    groups = write("groups", "0::/shop\n")

    assert_in_delta(1.5, pressure(groups, machine))
    write("cgroup/shop/memory.pressure", "some avg10=42.00 avg60=0.00 avg300=0.00 total=0\n")
    assert_in_delta(42.0, pressure(groups, machine))
    assert_nil(pressure("/nowhere", "/nowhere"))
  end

  private

  def write(name, text)
    File.join(@folder, name).tap do |path|
      FileUtils.mkdir_p(File.dirname(path))
      File.write(path, text)
    end
  end

  def limit(groups)
    machine = File.join(@folder, "machine")
    write("machine", "MemTotal:      4194304 kB\nMemFree: 1 kB\n") unless File.exist?(machine)
    Memory.limit(root: File.join(@folder, "cgroup"), groups: groups, machine: machine)
  end

  def pressure(groups, machine) = Memory.pressure(root: File.join(@folder, "cgroup"), groups: groups, machine: machine)
end
