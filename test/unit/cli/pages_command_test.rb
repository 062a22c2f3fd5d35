# frozen_string_literal: true

require "test_helper"
require "pando/cli"
require "pando/cli/pages"
require "pando/pages/report"

# How `pando pages` waits for a recording.
class PagesCommandTest < Minitest::Test
  Recording = Pando::Pages::Recording

  # Its time is over at once. Something else has the pipe, which does not end: a child of the application's.
  class Command < Pando::CLI::Pages
    public :record

    def initialize(written)
      @written = written
      super([], nil)
    end

    private

    def patience = -GRACE

    def ask_worker(file, progress)
      @written.call(file)
      @held = progress.dup
    end
  end

  def test_a_recording_that_is_complete_at_the_deadline_is_read
    parts = Recording::PARTS.to_h { |name| [name, name] }

    assert_equal parts, Command.new(->(file) { Recording.new(parts).write(file) }).record.parts
  end

  def test_without_one_the_worker_did_not_answer
    [->(_file) {}, ->(file) { file.write(Recording::MAGIC) }].each do |written|
      error = assert_raises(Pando::CLI::ControlClient::Silent) { Command.new(written).record }

      assert_equal "the worker did not answer in time", error.message
    end
  end
end
