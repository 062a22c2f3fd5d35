# frozen_string_literal: true

require "test_helper"
require "pando/fork_safety/libraries/constants"

# Constants are read without loading anything, and those that cannot be read are left out.
class LibrariesConstantsTest < Minitest::Test
  Constants = Pando::ForkSafety::Libraries::Constants

  module Readable
    NOTHING = nil
    NUMBER = 1
    HIDDEN = 2
    private_constant :HIDDEN
    autoload :Pending, "no/such/file"
  end

  # The block removes a constant whose name has been listed already.
  def test_a_constant_that_is_removed_meanwhile_is_left_out
    owner = Module.new
    %i[A B].each { |name| owner.const_set(name, 1) }
    found = []
    Constants.each(owner) { |name, _| found << name.tap { owner.send(:remove_const, (%i[A B] - [name]).first) } }

    assert_equal 1, found.size
  end

  def test_those_that_would_be_loaded_and_private_ones_are_left_out
    found = []
    Constants.each(Readable) { |*pair| found << pair }

    assert_equal [[:NOTHING, nil], [:NUMBER, 1]], found.sort_by(&:first)
  end

  def test_an_error_of_the_block_is_not_hidden
    [NameError, NoMethodError, LoadError].each do |error|
      assert_raises(error) { Constants.each(Readable) { |name, _| raise error if name == :NUMBER } }
    end
  end
end
