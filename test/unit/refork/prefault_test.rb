# frozen_string_literal: true

require "test_helper"
require "minitest/mock"
require "pando/refork/prefault"
require_relative "../cluster/support/fakes"

class ReforkPrefaultTest < Minitest::Test
  include ClusterSupport::Listening

  # Stands for Sys::HotSet.
  class FakeSet
    attr_reader :bytes, :calls
    attr_accessor :error

    def self.supported? = true

    def initialize
      @bytes = 0
      @calls = []
    end

    def observe_code
      call(:observe_code)
      @bytes = 4096
    end

    def observe(pagemap)
      call(:observe, pagemap)
      @bytes = 8192
    end

    def populate(*budget)
      return [0, 0.0] if @bytes.zero?

      call(:populate, *budget)
      [4096, 0.002]
    end

    def clear
      @bytes = 0
    end

    def ranges = 2

    private

    def call(*what)
      raise error if error

      @calls << what
    end
  end

  Role = Struct.new(:generation, :row)

  def setup
    super
    sets = [@set = FakeSet.new, @code = FakeSet.new]
    Pando::Sys::HotSet.stub(:new, -> { sets.shift }) do
      @prefault = Pando::Refork::Prefault.new(bytes: 6000, milliseconds: 30)
    end
    @row = Pando::Sys::Scoreboard.create(1).row(0)
    @role = Role.new(3, @row)
  end

  def test_what_the_mold_has_seen_the_worker_is_given
    @prefault.observe(@role, 7)
    @prefault.populate(@role)

    assert_equal [[:observe, 7], [:populate, 6000, 0.03]], @set.calls
    assert_equal [4096, 0.002], @row.prefaulted
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
    assert_equal [4096, 0.004], @row.prefaulted
  end

  def test_what_the_kernel_refuses_of_the_code_is_reported
    @code.error = Errno::EACCES.new
    @prefault.note_code(@role)

    assert_equal([3], events("prefault.unavailable").map { |event| event.payload[:generation] })
  end

  def test_a_worker_that_becomes_a_mold_has_no_set
    @prefault.observe(@role, 7)
    2.times { @prefault.populate(@role) }

    assert_equal(1, @set.calls.count { |name, *| name == :populate })
  end

  def test_without_a_set_nothing_is_done
    @prefault.populate(@role)

    assert_empty @set.calls
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
