# frozen_string_literal: true

require "test_helper"
require "pando/refork/preparation"
require "support/in_child"

# What a mold's heap is like when it forks.
class ReforkPreparationTest < Minitest::Test
  include Support::InChild

  # What has come to be since the last collections is young.
  def grown(manner)
    in_child do
      4.times { GC.start } # what other tests have left is gone or old by now
      GC.disable
      kept = Array.new(20_000) { [nil] }
      before = GC.stat(:old_objects)
      Pando::Refork::Preparation.run(manner)
      kept.size && (GC.stat(:old_objects) - before)
    end
  end

  def test_all_that_lives_is_old
    assert_operator grown(:promote), :>=, 20_000
    assert_operator grown(:warmup), :>=, 20_000
  end

  def test_nothing_is_done_unasked
    assert_operator grown(nil), :<, 20_000
  end
end
