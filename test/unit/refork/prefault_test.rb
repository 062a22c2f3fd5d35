# frozen_string_literal: true

require "test_helper"
require "minitest/mock"
require "pando/refork/prefault"
require_relative "../cluster/support/fakes"

class ReforkPrefaultTest < Minitest::Test
  include ClusterSupport::Listening

  # Stands for Sys::HotSet.
  class FakeSet
    attr_reader :calls
    attr_accessor :bytes, :error

    def self.supported? = true

    def initialize
      @bytes = 0
      @calls = []
    end

    def observe_code
      call(:observe_code)
      @bytes = 4096
    end

    def observe(pagemap, given, memory)
      call(:observe, pagemap, given, memory)
      @bytes = 8192
    end

    def share
      call(:share)
      @bytes = 0
    end

    # Half of it.
    def guess(last)
      call(:guess, last)
      @bytes = last.bytes / 2
      self
    end

    def protect = @calls << [:protect]

    def populate(*budget)
      return [0, 0.0] if @bytes.zero?

      call(:populate, *budget)
      [bytes, 0.002]
    end

    def clear
      @bytes = 0
    end

    def ranges = bytes / 4096

    private

    def call(*what)
      raise error if error

      @calls << what
    end
  end

  Role = Struct.new(:generation, :row)

  def setup
    super
    sets = [@set = FakeSet.new, FakeSet.new, @code = FakeSet.new]
    Pando::Sys::HotSet.stub(:new, -> { sets.shift }) do
      @prefault = Pando::Refork::Prefault.new(bytes: 6000, milliseconds: 30)
    end
    @row = Pando::Sys::Scoreboard.create(1).row(0)
    @role = Role.new(3, @row)
    2.times { begin_mold }
    @set.calls.clear
  end

  # @param scope [String] what Yama says
  def begin_mold(scope = "1\n", guess: FakeSet.new)
    File.stub(:read, scope) do
      Pando::Sys::HotSet.stub(:new, guess) { @prefault.begin_mold(@role) }
    end
  end

  def test_what_the_mold_has_seen_the_worker_is_given
    @prefault.observe(@role, 7)
    @prefault.populate(@role)

    assert_equal %i[observe populate protect], @set.calls.map(&:first)
    assert_equal [:populate, 6000, 0.03], @set.calls[-2]
    assert_equal [8192, 0.002], @row.prefaulted
    refute_predicate @row, :prefault_guessed?
    told = events("prefault.prepared").first.payload

    assert_equal [3, 8192, 2], told.values_at(:generation, :bytes, :ranges)
  end

  def test_the_code_that_the_source_has_mapped_is_mapped_in_a_worker_without_a_hot_set_too
    @prefault.note_code(@role)
    @prefault.populate(@role)

    assert_equal [[:observe_code], [:populate, Pando::Refork::Prefault::NO_LIMIT, 0.03]], @code.calls
    assert_equal [0, 0.0], @row.prefaulted
  end

  def test_the_code_gets_the_time_that_the_copies_have_left
    @prefault.observe(@role, 7)
    @prefault.note_code(@role)
    @prefault.populate(@role)

    assert_in_delta 0.028, @code.calls.last.last
    assert_equal [8192, 0.004], @row.prefaulted
  end

  def test_what_the_kernel_refuses_of_the_code_is_reported
    @code.error = Errno::EACCES.new
    @prefault.note_code(@role)

    assert_equal([3], events("prefault.unavailable").map { |event| event.payload[:generation] })
  end

  # The worker was forked before its mold knew the hot set, which is in memory that both share.
  def test_the_next_mold_guesses_by_what_its_source_and_the_last_mold_share
    @prefault.populate(@role)
    @set.bytes = 16_384
    begin_mold
    @prefault.populate(@role)

    assert_equal [8192, 0.002], @row.prefaulted
    assert_predicate @row, :prefault_guessed?
  end

  # Its workers have filled caches, and those of the next mold do not.
  def test_what_workers_of_a_cold_booted_mold_write_to_is_no_guess
    sets = [set = FakeSet.new, FakeSet.new, FakeSet.new]
    Pando::Sys::HotSet.stub(:new, -> { sets.shift }) do
      @prefault = Pando::Refork::Prefault.new(bytes: 6000, milliseconds: 30)
    end
    begin_mold
    set.bytes = 8192
    begin_mold
    @prefault.populate(@role)

    assert_equal [0, 0.0], @row.prefaulted
  end

  # The mold between the two did not come to know its own.
  def test_a_guess_is_handed_down_until_something_better_is_known
    @set.bytes = 16_384
    2.times { begin_mold }
    @prefault.populate(@role)

    assert_equal [4096, 0.002], @row.prefaulted
    assert_predicate @row, :prefault_guessed?
  end

  def test_the_guess_is_told_from_what_the_worker_has_written
    @set.bytes = 8192
    begin_mold
    @prefault.observe(@role, 7, 8)

    assert_equal([7, 4096, 8], @set.calls.last[1..].then { |pagemap, given, memory| [pagemap, given.bytes, memory] })
  end

  # Then a mold cannot find out what of the guess was right.
  def test_no_guess_where_the_memory_of_a_worker_may_not_be_read
    @set.bytes = 8192
    begin_mold("2\n")
    @prefault.populate(@role)

    assert_equal [0, 0.0], @row.prefaulted
  end

  def test_a_mold_that_gets_no_memory_for_a_guess_begins_without
    @set.bytes = 8192
    begin_mold(guess: FakeSet.new.tap { |set| set.error = Errno::ENOMEM.new })
    @prefault.populate(@role)

    assert_equal [0, 0.0], @row.prefaulted
    assert_equal([3], events("prefault.unavailable").map { |event| event.payload[:generation] })
  end

  def test_without_a_set_nothing_is_done
    @prefault.populate(@role)

    assert_equal %i[protect], @set.calls.map(&:first)
    assert_equal [0, 0.0], @row.prefaulted
  end

  def test_what_the_kernel_refuses_is_done_without
    @prefault.observe(@role, 7)
    @set.error = Errno::ENOMEM.new
    @prefault.populate(@role)
    @prefault.observe(@role, 7)

    assert_equal [0, 0.0], @row.prefaulted
    assert_equal 1, events("prefault.unavailable").size
  end
end
