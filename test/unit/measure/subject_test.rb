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

# What to do about an application that does not answer.
class MeasureAdviceTest < Minitest::Test
  Advice = Pando::Measure::Advice

  def test_by_what_the_application_has_said
    { "ArgumentError: Missing `secret_key_base` for 'production' environment" => /SECRET_KEY_BASE_DUMMY=1/,
      "ActiveSupport::MessageEncryptor::InvalidMessage" => /RAILS_MASTER_KEY/,
      "ActiveRecord::NoDatabaseError: We could not find your database" => /RAILS_ENV=production bin.rails db:prepare/,
      "ActiveRecord::StatementInvalid (Could not find table 'posts')" => /db:prepare/,
      "SQLite3::SQLException: no such table: posts" => /db:prepare/ }.each do |said, advice|
      assert_match(advice, Advice.on(said, "production"))
    end
    assert_nil(Advice.on("NoMethodError: undefined method 'title'", "production"))
  end

  def test_by_what_it_answered_everywhere
    assert_match(/--header "Host: /, Advice.on_statuses([403, 403]))
    assert_match(/--header "Cookie: /, Advice.on_statuses([200, 401]))
    assert_nil(Advice.on_statuses([403, 500]))
    assert_nil(Advice.on_statuses([]))
  end

  def test_last_words_are_those_of_the_error
    said = "#{"line\n" * 30}config.ru:1:in `boot': no database (RuntimeError)\n#{"\tfrom a.rb:1:in `b'\n" * 50}"
    words = Advice.last_words(said)

    assert(words.end_with?("no database (RuntimeError)"), words)
    assert_equal(20, words.lines.size)
  end
end
