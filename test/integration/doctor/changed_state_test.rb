# frozen_string_literal: true

require "test_helper"
require "support/doctor_run"
require "tmpdir"

# Promise: the doctor names the request that changes its process, and what it was before.
class DoctorChangedStateTest < Minitest::Test
  APP = <<~RUBY
    run lambda { |env|
      case env["PATH_INFO"]
      when "/umask" then File.umask(0o777)
      when "/limit" then Process.setrlimit(:CORE, 0, 0)
      when "/lazy" then ENV["LAZY"] ||= "a secret"
      end
      [200, {}, ["ok"]]
    }
  RUBY

  def test_each_request_that_changes_something_is_named
    run = examine

    assert_equal([["error", "GET /limit changes its process: limit core file size"],
                  ["warning", "GET /umask changes its process: umask 0022 -> 0777"],
                  ["note", "GET /lazy changes its process: ENV[\"LAZY\"] set"]], found(run))
    assert_equal([1, []], [run.status, run.report["undone"]])
    refute_match(/a secret/, run.out)
  end

  def test_what_the_setting_allows_is_none
    assert_equal(["note"], found(examine('fork_safety state: { allow: ["limit", "umask"] }')).map(&:first))
  end

  private

  def examine(config = "")
    Dir.mktmpdir do |folder|
      File.write("#{folder}/config.ru", "File.umask(0o022)\n#{APP}")
      File.write("#{folder}/requests", "/umask\n/limit\n/lazy\n/\n")
      File.write("#{folder}/pando.rb", config)
      Support::DoctorRun.new("--requests", "requests", "-c", "pando.rb", "--format", "json", folder: folder)
    end
  end

  def found(run)
    findings = run.report["findings"].select { |one| one["kind"] == "changed_state" }
    findings.map { |one| [one["severity"], one["message"].sub(/(core file size).*/, '\1')] }
  end
end
