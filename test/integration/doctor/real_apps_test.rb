# frozen_string_literal: true

require "test_helper"
require "support/doctor_run"
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

  def test_sinatra = examine("sinatra")
  def test_roda = examine("roda")

  private

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
