# frozen_string_literal: true

require "test_helper"
require "pando/cluster/monitor"

class ServiceNotesTest < Minitest::Test
  def setup = @notes = Pando::Cluster::ServiceNotes.create
  def teardown = @notes.close

  def test_blank_ones
    assert_equal([0, ""], [@notes.event_number, @notes.text])
    assert_predicate(@notes.to_io, :close_on_exec?)
  end

  def test_a_number_and_a_text_for_the_next_process
    @notes.event_number = (2**60) + 1
    @notes.text = "längst #{"x" * 100_000}"
    @notes.text = "kürzer"
    other = Pando::Cluster::ServiceNotes.for_fd(@notes.to_io.dup.tap { |io| io.autoclose = false }.fileno)

    assert_equal([(2**60) + 1, "kürzer"], [other.event_number, other.text])
  ensure
    other&.close
  end
end
