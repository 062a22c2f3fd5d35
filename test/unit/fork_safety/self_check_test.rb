# frozen_string_literal: true

require "test_helper"
require "pando/fork_safety"
require "rbconfig"
require_relative "../sys/support/in_child"

class ForkSafetySelfCheckTest < Minitest::Test
  include SysSupport::InChild

  SelfCheck = Pando::ForkSafety::SelfCheck
  STEPS = %w[allocator stdio clock gc thread loader resolver openssl].freeze

  def steps(**how) = [].tap { |taken| SelfCheck.run(**how) { |step| taken << step } }

  # @return [Array(Integer, Integer)] all, and those of everything
  def collections
    GC.start # one that is due anyway would count
    before = [GC.count, GC.stat(:major_gc_count)]
    yield
    [GC.count - before.first, GC.stat(:major_gc_count) - before.last]
  end

  def test_the_steps_in_their_order
    assert_equal STEPS, SelfCheck.steps
    assert_equal(STEPS, in_child { steps })
  end

  def test_a_child_that_need_not_collect
    assert_equal(STEPS - ["gc"], in_child { steps(collect: false) })
    assert_equal(0, in_child { collections { steps(collect: false) }.first })
  end

  def test_it_never_collects_everything
    assert_equal(0, in_child { collections { steps }.last })
  end

  def test_without_a_listener
    assert_nil(in_child { SelfCheck.run })
  end

  # No descriptor and no thread.
  def test_it_leaves_nothing_behind
    left = in_child do
      tasks = Dir.children("/proc/self/task").size
      SelfCheck.run(collect: false) # a collection would close what other tests have forgotten
      before = open_descriptors
      3.times { SelfCheck.run(collect: false) }
      [open_descriptors == before, Thread.list.size, Dir.children("/proc/self/task").size <= tasks]
    end

    assert_equal [true, 1, true], left
  end

  # That is not what it looks for: a process that is stuck does not come back at all.
  def test_a_step_that_fails_has_come_back
    taken = in_child do
      GC.singleton_class.prepend(Module.new { def start(**) = raise(IOError, "no") })
      Process.setrlimit(:NOFILE, 3)
      steps
    end

    assert_equal STEPS, taken
  end

  def test_what_is_buffered_is_not_written_twice
    program = <<~RUBY
      require "fiddle"
      require "pando/fork_safety"
      puts = Fiddle::Function.new(Fiddle::Handle::DEFAULT["puts"], [Fiddle::TYPE_VOIDP], Fiddle::TYPE_INT)
      puts.call("buffered")
      Process.wait(fork { exit!(Pando::ForkSafety::SelfCheck.run.nil?) })
    RUBY
    output = IO.popen([RbConfig.ruby, "-I", Support::Checkout.path("lib"), "-e", program], &:read)

    assert_equal "buffered\n", output
  end
end
