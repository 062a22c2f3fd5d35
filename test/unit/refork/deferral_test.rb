# frozen_string_literal: true

require "test_helper"
require "pando/refork/deferral"

# When a worker that does without full collections had better be replaced, and when it does without no longer.
class DeferralTest < Minitest::Test
  MIB = 1024**2

  def looks(size, *seen)
    deferral = Pando::Refork::Deferral.new(size * MIB)
    seen.map { |now, cause| deferral.look(now * MIB, cause) }
  end

  def test_as_long_as_it_does_not_grow_nothing_is_lost
    assert_equal %i[go_on go_on], looks(200, [200, nil], [210, :oldmalloc])
  end

  def test_growth_that_ruby_sees_no_garbage_in_would_not_go_away
    assert_equal %i[go_on go_on], looks(200, [240, nil], [280, nil])
  end

  def test_it_has_grown_and_ruby_wants_one
    assert_equal %i[go_on replace], looks(200, [229, :oldgen], [230, :oldgen])
  end

  # A collection of Ruby's own may have been of another opinion since.
  def test_what_ruby_has_wanted_once_it_will_want_again
    assert_equal %i[go_on replace], looks(200, [205, :oldmalloc], [240, nil])
  end

  def test_room_is_taken_in_its_place
    assert_equal %i[go_on go_on], looks(200, [205, :nofree], [240, :nofree])
  end

  # Nobody has replaced it; or there is no end to it.
  def test_there_is_a_limit
    assert_equal %i[replace give_in], looks(200, [289, :oldgen], [290, :oldgen])
    assert_equal %i[give_in], looks(200, [290, nil])
  end

  # It would be reached by nothing at all.
  def test_a_small_process_may_grow_by_some_mebibytes
    assert_equal %i[go_on replace replace give_in], looks(20, [35, :oldgen], [36, nil], [67, nil], [68, nil])
  end
end
