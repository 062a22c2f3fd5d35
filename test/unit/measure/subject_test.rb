# frozen_string_literal: true

require "test_helper"
require "json"
require "tmpdir"
require "pando/measure/subject"

# What is shown of Pando's output when it has failed.
class MeasurePandoSubjectTest < Minitest::Test
  # Its log is in JSON, for the measurement to read.
  def test_errors_of_the_log_are_written_for_a_human_and_each_once
    failed = { event: "request.failed", level: "error",
               error: { class: "RuntimeError", message: "no such", backtrace: ["config.ru:3:in `call'", "b.rb:1"] } }
    words = last_words([JSON.generate(event: "worker.ready", level: "info"), JSON.generate(failed.merge(path: "/a")),
                        JSON.generate(failed.merge(path: "/b")), "the application's line", "{\"event\": 1, half"])

    assert_equal(["request.failed: RuntimeError: no such (config.ru:3:in `call')", "the application's line",
                  "{\"event\": 1, half"], words.lines(chomp: true))
  end

  def test_a_warning_without_an_error_is_shown_as_it_is
    warning = JSON.generate(event: "setting.ignored", level: "warn", reason: "x")

    assert_equal(warning, last_words([warning]))
    assert_equal("{\"error\":1}", last_words(["{\"error\":1}"]))
  end

  private

  def last_words(lines)
    Dir.mktmpdir do |folder|
      File.write(File.join(folder, "errors"), lines.map { |line| "#{line}\n" }.join)
      Pando::Measure::PandoSubject.new(nil, workers: 2, folder: folder).last_words
    end
  end
end
