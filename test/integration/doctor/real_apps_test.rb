# frozen_string_literal: true

require "test_helper"
require "support/doctor_run"
require "support/rails_app"
require "tmpdir"
require_relative "../../../bench/support/bundle"

# Promise: no error and no warning about an application that has none.
class DoctorRealAppsTest < Minitest::Test
  parallelize_me!

  FIXTURES = File.expand_path("../../fixtures/apps", __dir__)
  REQUESTS = "/\nPOST /notes text=hello\n/notes/1\n"

  def test_rails
    report = examine("rails")

    assert_equal(["GET /", "POST /notes", "GET /notes/1"], report["requests"])
  end

  # As `rails new` leaves it: in development it is SQLite that is inherited.
  def test_a_fresh_rails_app
    report, text = examine_fresh_app

    assert_equal([0, 0, 0], report["summary"].values_at("errors", "warnings", "undone"), report["findings"].to_s)
    assert_equal("development", report["application"]["environment"])
    assert_match(/^\d+ notes about what gems do inside; --verbose shows them$/, text)
    assert_match(/^OK: 0 errors, 0 warnings, \d+ notes$/, text)
  end

  # Nobody has named an environment: it is neither development's database nor production's.
  def test_the_routes_of_a_fresh_rails_app
    app = Support::RailsApp.create
    app.rails("generate", "scaffold", "Post", "title", "--quiet")
    app.rails("db:migrate")
    app.prepare_database("test")
    run = doctor(app, "--requests", "routes", "--format", "json")

    assert_equal([0, [], []], [run.status, run.faults, run.report["undone"]], run.err)
    assert_equal("test", run.report["application"]["environment"])
    assert_empty(%w[/posts /posts/new /up].map { |path| "GET #{path}" } - run.report["requests"])
    assert_empty(run.report["findings"].select { |one| one["subject"] == "files of Zeitwerk" })
  ensure
    app&.remove
  end

  def test_sinatra = examine("sinatra")
  def test_roda = examine("roda")

  private

  def examine_fresh_app
    app = Support::RailsApp.create
    app.prepare_database
    json, text = [%w[--format json], []].map { |arguments| doctor(app, "-e", "development", *arguments) }
    assert_equal([0, 0], [json.status, text.status], json.out)
    [json.report, text.out]
  ensure
    app&.remove
  end

  def doctor(app, *arguments)
    Support::DoctorRun.new(*arguments, "--patience", "30", folder: app.folder,
                                                           env: Support::RailsApp.environment.merge(app.bundled))
  end

  def examine(name)
    bundle = Bench::Bundle.new(name, File.join(FIXTURES, name, "Gemfile")).prepare
    Dir.mktmpdir do |folder|
      File.write(File.join(folder, "requests"), REQUESTS)
      run = Support::DoctorRun.new("-e", "production", "--format", "json", "--patience", "30",
                                   "--requests", File.join(folder, "requests"),
                                   folder: File.join(FIXTURES, name),
                                   env: bundle.environment.merge("APP_DATABASE" => File.join(folder, "notes.sqlite3"),
                                                                 "RAILS_ENV" => "production"))
      assert_empty(run.faults, run.out)
      assert_equal(0, run.status)
      run.report
    end
  end
end
