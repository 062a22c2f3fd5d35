# frozen_string_literal: true

require "test_helper"
require "tempfile"
require "pando/cluster/monitor"
require_relative "../support/clock"
require_relative "../support/fakes"

# Whether the kernel has killed for want of memory.
class OomWatchTest < Minitest::Test
  include ClusterSupport::Clock

  def counter(number)
    @file ||= Tempfile.new("events")
    File.write(@file.path, "low 0\noom 7\noom_kill #{number}\noom_group_kill 0\n")
    @file.path
  end

  def test_a_counter_that_rose_says_so_for_a_moment
    watch = Pando::Cluster::Memory::OomWatch.new([counter(3)])
    refute_predicate watch, :killed_recently?

    counter(4)
    assert_predicate watch, :killed_recently?
    assert_predicate watch, :killed_recently?
    elapse 3

    refute_predicate watch, :killed_recently?
  end

  def test_a_file_without_the_line_is_passed_over
    plain = Tempfile.new("vmstat").tap { |file| file.write("nothing 1\n") && file.flush }
    watch = Pando::Cluster::Memory::OomWatch.new([plain.path, "/nowhere", counter(1)])
    counter(2)

    assert_predicate watch, :killed_recently?
  end

  def test_a_kernel_that_does_not_tell
    refute_predicate Pando::Cluster::Memory::OomWatch.new(["/nowhere"]), :killed_recently?
  end

  # Of Child.
  Victim = Struct.new(:ending, :condemned) do
    def condemned? = !!condemned
  end

  def test_its_victims_are_those_that_nobody_else_has_killed
    watch = Pando::Cluster::Memory::OomWatch.new([counter(3)])
    killed, crashed = %w[KILL SEGV].map { |name| Pando::Sys::Ending.new(:killed, Signal.list.fetch(name)) }
    refute watch.victim?(Victim.new(killed))
    counter(4)

    assert watch.victim?(Victim.new(killed))
    refute watch.victim?(Victim.new(killed, true)), "the monitor has"
    refute watch.victim?(Victim.new(crashed))
    refute watch.victim?(Victim.new(Pando::Sys::Ending.new(:exited, 9)))
    refute watch.victim?(Victim.new(nil))
  end

  # The kernel has killed a process of others, or a program that a request has started.
  def test_a_kill_of_long_ago_says_nothing_about_a_death
    watch = Pando::Cluster::Memory::OomWatch.new([counter(3)])
    counter(4)
    elapse 0.3
    watch.look
    elapse 3
    watch.look

    refute watch.victim?(Victim.new(ClusterSupport.killed))
    counter(5)
    assert watch.victim?(Victim.new(ClusterSupport.killed))
  end

  def test_it_reads_the_counter_a_few_times_a_second
    reads = 0
    watch = Pando::Cluster::Memory::OomWatch.new([counter(3)])
    watch.define_singleton_method(:read) { super().tap { reads += 1 } }
    100.times { elapse(0.05) && watch.look }

    assert_includes 15..20, reads
  end

  def test_this_machine_tells
    watch = Pando::Cluster::Memory::OomWatch.new

    assert_kind_of Integer, watch.send(:read)
  end
end
