# frozen_string_literal: true

require_relative "../config/config_test_case"
require "json"
require "minitest/mock"
require "support/in_child"
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

# The server that is measured, and what is said of it.
class MeasurePandoSubjectConfigTest < ConfigTestCase
  include Support::InChild

  Tree = Struct.new(:allocator, :jit)

  def test_the_threads_of_its_workers
    assert_equal([1, 1], threads(load_config("workers 2")))
    assert_equal([5, 5], threads(load_config("workers 2\nthreads 5")))
    assert_equal([3, 3], threads(load_config("workers 2", env: { "RAILS_MAX_THREADS" => "3" })))
    assert_equal([1, 1], threads(load_config("threads 1\nreactor false")))
  end

  def test_the_threads_of_as_many_workers_as_are_measured
    assert_equal([1, 4], threads(load_config("workers 2\nthreads :auto"), workers: 255))
    assert_equal([1, 1], threads(load_config("threads :auto\nworkers 1"), workers: 1023))
  end

  def test_it_tells_what_it_runs_without
    config = load_config("admin \"127.0.0.1:9394\"\nservice(:clock) { }\nnode(:own) { 1 }")

    assert_equal(["node \"own\"", "service :clock", "admin"], facts(config)[:left_out])
    assert_empty(facts(load_config("timeout 7"))[:left_out])
  end

  def test_no_admin_process_no_services_and_no_nodes_are_started
    ["admin \"127.0.0.1:9394\"", "service(:clock) { }", "node(:own) { 1 }"].each do |line|
      config = measured(load_config("timeout 7\n#{line}"))

      assert_equal([[], {}, [], 7.0], [config.admin, config.services, config.nodes, config.timeout], line)
    end
  end

  # As under LC_ALL=C, where files are read as ASCII unless the reader says otherwise.
  def test_a_file_with_umlauts_is_read_in_any_locale
    timeout = in_child do
      Warning[:deprecated] = $VERBOSE = nil
      Encoding.default_external = Encoding::US_ASCII
      measured(load_config("timeout 7 # Gr\u00FC\u00DFe\nservice(:clock) { \"\u00DChr\" }")).timeout
    end

    assert_in_delta(7.0, timeout)
  end

  def test_a_file_with_none_of_them_is_taken_as_it_is
    assert_equal(File.join(@dir, "config/pando.rb"), measured(load_config("timeout 7")).config_file)
  end

  private

  def threads(config, **options) = facts(config, **options)[:threads]

  def facts(config, workers: 2)
    subject = Pando::Measure::PandoSubject.new(config, workers: workers, folder: @dir)
    subject.stub(:tree, Tree.new("malloc")) { subject.facts }
  end

  # @return [Pando::Config] of the server that measures the application with this one
  def measured(config)
    subject = Pando::Measure::PandoSubject.new(config, workers: 2, folder: @dir)
    command = subject.send(:command)
    Pando::Config.load(["-c", command[command.index("-c") + 1]], env: { "RACK_ENV" => "production" }, dir: @dir)
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
