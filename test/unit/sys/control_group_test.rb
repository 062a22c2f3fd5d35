# frozen_string_literal: true

require "test_helper"
require "fileutils"
require "tmpdir"
require "pando/sys/control_group"

# Trees of control groups as kernels and containers show them.
class SysControlGroupTest < Minitest::Test
  MIB = 1024**2
  V2 = "0::/slice/shop\n"
  V1 = "9:name=systemd:/\n4:cpu,memory:/docker/abc\n2:cpuset:/\n0::/\n"

  def setup = @folder = Dir.mktmpdir
  def teardown = FileUtils.rm_rf(@folder)

  def write(name, text)
    File.join(@folder, name).tap do |path|
      FileUtils.mkdir_p(File.dirname(path))
      File.write(path, "#{text}\n")
    end
  end

  def group(membership = V2)
    Pando::Sys::ControlGroup.new(root: File.join(@folder, "cgroup"), groups: write("groups", membership))
  end

  def fill(place, limit, used, stat, version: 2)
    names = version == 2 ? %w[memory.max memory.current] : %w[memory.limit_in_bytes memory.usage_in_bytes]
    names.zip([limit, used]) { |name, number| write("cgroup/#{place}/#{name}", number.to_s) }
    write("cgroup/#{place}/memory.stat", stat)
  end

  def test_the_least_limit_of_all_around_us_counts
    write("cgroup/slice/shop/memory.max", "max")
    write("cgroup/slice/memory.max", (256 * MIB).to_s)

    assert_equal(256 * MIB, group.memory_limit)
    write("cgroup/slice/shop/memory.max", (128 * MIB).to_s)
    assert_equal(128 * MIB, group.memory_limit)
  end

  def test_version_1
    write("cgroup/memory/docker/abc/memory.limit_in_bytes", (200 * MIB).to_s)
    write("cgroup/memory/memory.limit_in_bytes", "9223372036854771712")

    assert_equal(200 * MIB, group(V1).memory_limit)
    write("cgroup/memory/docker/abc/memory.limit_in_bytes", "9223372036854771712")
    assert_nil(group(V1).memory_limit)
  end

  def test_in_a_container_the_groups_path_is_one_of_the_hosts
    write("cgroup/memory.max", (300 * MIB).to_s)

    assert_equal(300 * MIB, group("0::/../../kubepods/abc\n").memory_limit)
  end

  def test_how_full_a_group_is_without_files_that_can_be_dropped
    fill("slice/shop", 200 * MIB, 180 * MIB, "anon 5\ninactive_file #{30 * MIB}\nactive_file 7")

    assert_equal([150 * MIB, 200 * MIB], group.memory.to_a)
    assert_in_delta(75.0, group.memory.percent)
  end

  def test_how_full_a_group_of_version_1_is
    fill("memory/docker/abc", 200 * MIB, 180 * MIB, "inactive_file 1\ntotal_inactive_file #{20 * MIB}", version: 1)

    assert_in_delta(80.0, group(V1).memory.percent)
  end

  # The fullest is not the one with the least left.
  def test_the_least_that_is_left_of_all_around_us_counts
    assert_nil(group.memory_left)
    fill("slice/shop", 1024 * MIB, 900 * MIB, "")
    fill("slice", 64 * 1024 * MIB, 58 * 1024 * MIB, "")

    assert_equal(124 * MIB, group.memory_left)
    assert_in_delta(90.625, group.memory.percent)
    fill("slice/shop", 1024 * MIB, 1025 * MIB, "")
    assert_equal(0, group.memory_left)
  end

  def test_the_fullest_of_all_counts
    fill("slice/shop", "max", 180 * MIB, "")
    assert_nil(group.memory)
    fill("slice", 400 * MIB, 380 * MIB, "")
    assert_in_delta(95.0, group.memory.percent)
    fill("slice/shop", 1000 * MIB, 180 * MIB, "")

    assert_in_delta(95.0, group.memory.percent)
  end

  def test_pressure
    assert_nil(group.memory_pressure)
    write("cgroup/slice/shop/memory.pressure", "some avg10=42.50 avg60=0.00 avg300=0.00 total=0\nfull avg10=1.00")

    assert_in_delta(42.5, group.memory_pressure)
  end

  # Version 2 beside version 1, for what needs no controller.
  def test_pressure_of_a_hybrid
    write("cgroup/unified/shop/memory.pressure", "some avg10=7.25 avg60=0.00 avg300=0.00 total=0")

    assert_in_delta(7.25, group("4:memory:/abc\n0::/shop\n").memory_pressure)
  end

  def test_where_the_kernels_victims_are_counted
    assert_nil(group.oom_counter)
    two = write("cgroup/slice/shop/memory.events", "oom_kill 0")
    one = write("cgroup/memory/docker/abc/memory.oom_control", "oom_kill 0")

    assert_equal([two, one], [group.oom_counter, group(V1).oom_counter])
  end

  def test_quota_of_cpus
    { "50000 100000" => 1/2r, "max 100000" => nil, "250000 100000" => 5/2r, "" => nil, "x y" => nil,
      "1000 0" => nil }.each do |text, quota|
      write("cgroup/slice/shop/cpu.max", text)
      assert_equal([quota], [group.cpu_quota], text)
    end
    write("cgroup/slice/cpu.max", "100000 100000")
    write("cgroup/slice/shop/cpu.max", "150000 100000")
    assert_equal(1r, group.cpu_quota)
  end

  def test_quota_of_version_1
    { "-1" => nil, "150000" => 3/2r }.each do |time, quota|
      write("cgroup/cpu/docker/abc/cpu.cfs_quota_us", time)
      write("cgroup/cpu/docker/abc/cpu.cfs_period_us", "100000")
      assert_equal([quota], [group(V1).cpu_quota], time)
    end
  end

  def test_without_groups
    nowhere = Pando::Sys::ControlGroup.new(root: "/nowhere", groups: "/nowhere/groups")

    %i[memory_limit memory memory_left memory_pressure oom_counter cpu_quota].each do |name|
      assert_nil(nowhere.public_send(name))
    end
  end
end
