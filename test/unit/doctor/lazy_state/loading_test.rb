# frozen_string_literal: true

require "test_helper"
require "pando/doctor/lazy_state"

# Constants that wait for their first use.
class LazyStateAutoloadsTest < Minitest::Test
  module Waiting
    autoload :Thing, "lazy_state_thing/never_loaded"
    autoload :Absolute, "/nowhere/at_all.rb"
  end

  def setup = @autoloads = Pando::Doctor::LazyState::Autoloads.new

  def test_a_file_is_known_by_what_it_is_required_as
    assert_equal "LazyStateAutoloadsTest::Waiting::Thing",
                 @autoloads.constant_of("/gems/x-1/lib/lazy_state_thing/never_loaded.rb")
    assert_equal "LazyStateAutoloadsTest::Waiting::Absolute", @autoloads.constant_of("/nowhere/at_all.rb")
  end

  def test_another_file_of_that_name_is_not
    assert_nil @autoloads.constant_of("/gems/x-1/lib/other/never_loaded.rb")
    assert_nil @autoloads.constant_of("/gems/x-1/lib/other.rb")
  end

  def test_looking_loads_nothing
    assert Waiting.autoload?(:Thing)
  end
end
