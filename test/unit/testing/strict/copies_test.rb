# frozen_string_literal: true

require "test_helper"
require "tmpdir"
require "support/in_child"
require "pando/testing/strict"

# What of before the refork is taken for a copy: a pid in a constant, a lock, a generator.
class StrictCopiesTest < Minitest::Test
  include Support::InChild

  PID = 987_654

  module Holder
    WORKER_PID = PID
    COUNT = PID
    NAME = "worker-#{PID}".freeze
    PADDED = "00#{PID}".freeze
    LONG = "#{PID} #{"x" * 200}".freeze
  end

  def test_a_number_that_is_called_so_and_a_text_that_contains_it
    found = subjects(PID).grep(/\A#{Holder}::/)

    assert_equal ["#{Holder}::NAME", "#{Holder}::WORKER_PID"], found.sort
  end

  # The year in it may be anybody's pid.
  def test_rubys_own_constants_are_none
    year = RUBY_COPYRIGHT[/\d+/].to_i

    refute_includes subjects(year), "RUBY_COPYRIGHT"
  end

  # A child has the fibers of the thread that forks it.
  def test_a_lock_of_a_suspended_fiber_is_no_background_threads
    found = in_child do
      Fiber.new { Mutex.new.synchronize { Fiber.yield } }.tap(&:resume).then do |fiber|
        [fiber.alive?, Pando::Testing::Strict::Locks.findings.map(&:kind)]
      end
    end

    assert_equal [true, []], found
  end

  def test_a_lock_of_a_background_thread
    mutex = Mutex.new
    holder = Thread.new { mutex.synchronize { Thread.stop } }
    Thread.pass until holder.stop?

    assert_equal [:lock_held], Pando::Testing::Strict::Locks.findings.map(&:kind)
  ensure
    holder.kill.join
  end

  # All frames of a thread, a runner's for instance, may be Pando's.
  def test_a_lock_while_no_background_thread_has_a_line_of_the_application
    kinds, location, message = in_child do
      waiting = Queue.new
      Thread.new(waiting, &pandos("proc { |queue| Mutex.new.synchronize { queue << true; Thread.stop } }"))
      waiting.pop
      found = Pando::Testing::Strict::Locks.findings
      [found.map(&:kind), found.first.location, found.first.message]
    end

    assert_equal [["lock_held"], nil], [kinds, location]
    assert_match(/the child does not have the thread\.\z/, message)
  end

  def test_a_generator_that_was_drawn_from
    generator = Random.new
    draws = Pando::Testing::Strict::Draws.new
    generator.rand

    assert_equal [:random_copied], draws.findings.map(&:kind)
  end

  # Ruby 3.1 has it in a private constant. If a file exists, Ruby tries the next name.
  def test_the_generator_of_names_for_temporary_files_is_harmless
    found = in_child do
      Dir::Tmpname.send(:remove_const, :RANDOM)
      Dir::Tmpname.const_set(:RANDOM, Random.new)
      Dir::Tmpname.private_constant(:RANDOM)
      draws = Pando::Testing::Strict::Draws.new
      Dir::Tmpname.const_get(:RANDOM).rand
      draws.findings.map(&:kind)
    end

    assert_empty found
  end

  private

  # @return [Object] of the code, as of a file of Pando
  def pandos(code)
    file = Support::Checkout.path("lib/pando/none.rb")
    RubyVM::InstructionSequence.compile(code, file, file).eval
  end

  def subjects(*pids) = Pando::Testing::Strict::Pids.findings(pids).map(&:subject)
end
