# frozen_string_literal: true

require "test_helper"
require "open3"
require "support/checkout"
require "pando/fork_safety/weak_set"

class WeakSetTest < Minitest::Test
  def setup
    @set = Pando::ForkSafety::WeakSet.new
  end

  def test_it_compares_by_identity
    one = +"same"
    other = +"same"
    @set.add(one).add(one)

    assert_includes @set, one
    refute_includes @set, other
    assert_equal [one], @set.to_a
  end

  # In a Ruby of its own, which may crash. The first collection leaves most of the dead unswept, the second sweeps them
  # and marks the list.
  def test_the_dead_are_not_listed
    command = [RbConfig.ruby, "-I", Support::Checkout.path("lib"), "-e", <<~RUBY]
      require "pando/fork_safety/weak_set"
      set = Pando::ForkSafety::WeakSet.new
      20_000.times { set.add(Object.new) }
      alive = Object.new
      set.add(alive)
      GC.start(immediate_sweep: false)
      listed = set.to_a
      GC.start
      puts listed.include?(alive), listed.size < 1000
    RUBY
    output, status = Open3.capture2e({ "RUBYOPT" => nil }, *command)

    assert_predicate status, :success?, output
    assert_equal "true\ntrue\n", output
  end
end
