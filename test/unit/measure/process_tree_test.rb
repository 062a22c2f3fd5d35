# frozen_string_literal: true

require "test_helper"
require "pando/measure/process_tree"

# What a server's processes take, as /proc tells.
class MeasureProcessTreeTest < Minitest::Test
  # A parent with two workers, one of which has a block of its own; then one ends, and burns CPU time before.
  PROGRAM = <<~RUBY
    $stdout.sync = true
    block = 40.times.map { |number| "x" * (1 << 20) }
    works = Array.new(2) do |number|
      orders, line = IO.pipe
      ready, done = IO.pipe
      pid = fork do
        Process.setproctitle("toy worker \#{number}")
        own = "y" * (20 << 20) if number == 1
        done.write("x")
        orders.read(1)
        deadline = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID) + 0.3
        nil until Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID) > deadline
        own
      end
      ready.read(1)
      [pid, line]
    end
    Process.setproctitle("toy parent")
    puts "ready"
    $stdin.gets
    pid, line = works.first
    line.write("x")
    Process.wait(pid)
    puts "one less"
    $stdin.gets
    works.each { |each, _| Process.kill(:KILL, each) rescue nil }
  RUBY

  def setup
    @program = IO.popen([{ "RUBY_YJIT_ENABLE" => nil }, RbConfig.ruby, "-e", PROGRAM], "r+")
    @tree = Pando::Measure::ProcessTree.new(@program.pid, /\Atoy worker/)
    assert_equal("ready\n", @program.gets)
  end

  def teardown
    Process.kill(:KILL, *@tree.pids)
    @program.close
  end

  def test_memory_is_counted_once_and_that_of_workers_by_itself
    reading = @tree.read

    assert_equal([3, 2], [reading.processes, reading.workers])
    assert_includes(60..120, reading.pss / (1 << 20))
    assert_includes(10..25, reading.own / (1 << 20))
  end

  def test_the_cpu_time_of_those_that_have_ended_counts
    before = @tree.read.cpu
    @program.puts
    assert_equal("one less\n", @program.gets)
    reading = @tree.read

    assert_equal([2, 1], [reading.processes, reading.workers])
    assert_includes(0.25..3, reading.cpu - before)
  end

  def test_the_jit_of_a_worker_is_known_by_its_memory
    assert_nil(@tree.jit)
    skip "this Ruby has no YJIT" unless defined?(RubyVM::YJIT.enable)

    IO.popen([RbConfig.ruby, "--yjit", "-e", "puts 1; $stdout.flush; gets"], "r+") do |compiled|
      compiled.gets
      assert_equal("YJIT", Pando::Measure::ProcessTree.new(compiled.pid, /no title/).jit)
    end
  end

  def test_nobody_is_there
    gone = Pando::Measure::ProcessTree.new((2**22) + 1, //)

    assert_empty(gone.pids)
    assert_equal([0, 0, 0.0], [gone.read.pss, gone.read.workers, gone.read.cpu])
  end
end
