# frozen_string_literal: true

require "test_helper"
require "objspace"
require "pando/refork/collector"
require "support/in_child"

# What a mold's heap is like when it forks.
class ReforkPreparationTest < Minitest::Test
  include Support::InChild

  # @return [Integer] how many are old of those that have just come to be
  def grown(manner)
    in_child do
      GC.disable
      kept = Array.new(20_000) { [nil] }
      Pando::Refork::Preparation.run(manner)
      kept.count { |one| ObjectSpace.dump(one).include?('"old":true') }
    end
  end

  def test_all_that_lives_is_old
    assert_operator grown(:promote), :>=, 20_000
    assert_operator grown(:warmup), :>=, 20_000
    assert_operator grown(:auto), :>=, 20_000
  end

  def test_it_is_compacted_where_ruby_finds_the_keys_of_a_hash_after_that
    usual = %w[3.1.2 3.3.5 3.3.6 3.3.10 4.0.0].map { |ruby| Pando::Refork::Preparation.usual(ruby) }

    assert_equal %i[promote promote warmup warmup warmup], usual
  end

  # A compaction is counted.
  def test_auto_compacts_where_that_is_usual
    compactions = in_child do
      before = GC.stat(:compact_count) # another test of this process may have compacted its heap
      Pando::Refork::Preparation.run(:auto)
      GC.stat(:compact_count) - before
    end

    assert_equal Pando::Refork::Preparation.usual == :warmup && GC.respond_to?(:compact), compactions.positive?
  end

  def test_what_a_collection_of_young_garbage_takes_is_known_then
    prices = [:promote, nil].map do |manner|
      in_child { Pando::Refork::Preparation.run(manner) || Pando::Refork::Preparation.minor_gc_seconds }
    end

    assert_operator prices.first, :>, 0
    assert_nil prices.last
  end

  # A text that a mold writes to is copied at once in the next mold; the text that it leaves alone stays shared.
  def test_what_a_mold_has_written_to_is_copied_in_the_next_one
    skip "no MADV_POPULATE_WRITE" unless Pando::Sys::HotSet.supported?
    written, left = Array.new(2) { "x" * (512 * 4096) }
    faults = in_child do
      Pando::Refork::Preparation.run(:promote) # in a cold-booted mold
      in_child do
        first = faults_of(written)
        Pando::Refork::Preparation.run(:promote)
        in_child do
          Pando::Refork::Preparation.run(:promote)
          [first, faults_of(written), faults_of(left)]
        end
      end
    end

    assert_operator faults[0], :>=, 511
    assert_operator faults[1], :<, 128
    assert_operator faults[2], :>=, 511
  end

  # A worker knows by that whether what it shares with its mold has served.
  def test_whether_the_mold_was_a_worker_before
    kin = in_child do
      Pando::Refork::Preparation.run(nil)
      first = Pando::Refork::Preparation.warm?
      worker = in_child { Pando::Refork::Preparation.warm? }
      later = in_child { Pando::Refork::Preparation.run(nil) || Pando::Refork::Preparation.warm? }
      [first, worker, later]
    end

    assert_equal [false, false, true], kin
  end

  # A pool's first mold, forked from that of another pool.
  def test_a_mold_that_begins_anew_was_no_worker
    kin = in_child do
      Pando::Refork::Preparation.run(nil)
      in_child do
        Pando::Refork::Preparation.begin_anew
        Pando::Refork::Preparation.run(nil)
        first = Pando::Refork::Preparation.warm?
        [first, in_child { Pando::Refork::Preparation.run(nil) || Pando::Refork::Preparation.warm? }]
      end
    end

    assert_equal [false, true], kin
  end

  def test_nothing_is_done_unasked
    assert_operator grown(nil), :<, 10_000
  end

  private

  # @return [Integer] how many it takes to write to all of the text
  def faults_of(text)
    before = Pando::Sys::Memory.minor_faults(Process.pid)
    0.step(text.bytesize - 1, 4096) { |at| text.setbyte(at, 1) }
    Pando::Sys::Memory.minor_faults(Process.pid) - before
  end
end
