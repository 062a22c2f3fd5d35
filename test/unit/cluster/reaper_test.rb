# frozen_string_literal: true

require "test_helper"
require_relative "support/kin"

class ClusterReaperTest < Minitest::Test
  include ClusterSupport::Listening
  include ClusterSupport::Kin

  def setup
    super
    @reaper = Pando::Cluster::Reaper.new(@roster, @inbox, @observer)
  end

  # A dead child that nobody has waited for. (Its state in /proc would not do: a
  # zombie whose other threads still end cannot be waited for yet.)
  def stranger
    fork { exit!(0) }.tap do |pid|
      pidfd = Pando::Sys::Pidfd.of_child(pid)
      wait_until { Pando::Sys.pidfd_wait(pidfd, true) }
      pidfd.close
    end
  end

  def test_who_lives_is_not_buried
    child = adopted
    @reaper.bury(child)

    assert_empty told(:child_lost)
    assert_nil child.pidfd.reap
  end

  def test_who_is_dead_is_buried_with_how_it_ended
    child = adopted { exit!(7) }
    ended(child)
    @reaper.bury(child)

    assert_equal [[:child_lost, child, Pando::Sys::Ending.new(:exited, 7)]], told(:child_lost)
    assert_raises(Errno::ECHILD) { Process.wait(@pids.last) }
  end

  def test_last_words_are_heard_first
    child = adopted do |link|
      link.send(Message.new(:failed, text: "last words"))
      exit!(1)
    end
    ended(child)
    @reaper.bury(child)

    assert_equal "last words", child.failure
    assert_equal 1, told(:child_lost).size
  end

  def test_many_last_words_are_heard_to_the_end
    child = adopted do |link|
      nil while link.send(Message.new(:detail, text: "x"))
      exit!(1)
    end
    ended(child)
    @reaper.bury(child)

    assert_operator child.detail.bytesize, :>, Pando::Cluster::Inbox::BURST
  end

  def test_a_helper_that_holds_the_link_hides_no_death
    child = adopted do
      @pids << fork { stay } # with a copy of the link
      exit!(0)
    end
    ended(child)
    @reaper.bury(child)

    assert_equal 1, told(:child_lost).size
  end

  def test_nobody_is_buried_twice
    child = adopted { exit!(0) }
    ended(child)
    @observer.define_singleton_method(:child_lost) { |lost, _| (@calls << [:child_lost, lost]) && lost.become_gone }
    3.times { @reaper.bury(child) }

    assert_equal 1, told(:child_lost).size
  end

  def test_strangers_are_reaped_and_counted
    pids = Array.new(3) { stranger }
    @reaper.bury_strangers

    assert_equal 3, @reaper.strangers
    assert_equal pids.sort, events("orphan.reaped").map { |event| event[:pid] }.sort
    pids.each { |pid| assert_raises(Errno::ECHILD) { Process.wait(pid) } }
    assert_empty @observer.calls
  end

  def test_a_child_of_ours_is_never_a_stranger
    child = adopted { exit!(3) }
    ended(child)
    stranger
    @observer.define_singleton_method(:child_lost) do |lost, ending|
      (@calls << [:child_lost, ending.number]) && lost.become_gone
    end
    @reaper.bury_strangers

    assert_equal 1, @reaper.strangers
    assert_equal [[:child_lost, 3]], told(:child_lost)
  end

  def test_a_child_that_another_waited_for_is_buried_all_the_same
    child = adopted { exit!(0) }
    Process.wait(child.pid)
    @reaper.bury(child)

    assert_equal(["status unknown"], told(:child_lost).map { |_, _, ending| ending.to_s })
  end
end
