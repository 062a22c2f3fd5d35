# frozen_string_literal: true

require "test_helper"
require "minitest/mock"
require "stringio"
require "tmpdir"
require "pando/cli"
require "pando/cli/doctor"
require "pando/doctor"

# What `pando doctor` makes of its command line and of a report; the examination itself is left out.
class DoctorCommandTest < Minitest::Test
  Doctor = Pando::Doctor
  ROUTES = %w[--requests routes].freeze

  def setup
    @folder = Dir.mktmpdir
    File.write(File.join(@folder, "config.ru"), "run nil")
    @findings = []
    @evidence = Doctor::Evidence.new(@folder)
  end

  def teardown
    FileUtils.rm_rf(@folder)
  end

  def test_routes_are_asked_in_test_by_themselves
    assert_equal(["test", :routes], examined(*ROUTES))
    assert_match(/\Apando doctor: config.ru in the environment test, /, @out)
  end

  def test_routes_are_asked_in_the_environment_that_is_named
    assert_equal("development", examined(*ROUTES, "-e", "development").first)
    assert_equal("staging", examined(*ROUTES, env: { "RACK_ENV" => "staging" }).first)
    refute_equal("test", examined(*ROUTES, env: { "RAILS_ENV" => "staging" }).first, "it would be two at once")
  end

  def test_routes_are_not_asked_in_production
    [[%w[-e production], {}], [[], { "RAILS_ENV" => "production" }], [[], { "RACK_ENV" => "production" }]]
      .each do |arguments, env|
        assert_nil(examined(*ROUTES, *arguments, env: env))
        assert_equal(2, @status)
        assert_match(/--requests routes would request every GET route .* in production.* --yes/, @err)
        refute_nil(examined(*ROUTES, "--yes", *arguments, env: env))
      end
  end

  def test_routes_are_not_asked_where_the_file_says_production
    FileUtils.mkdir_p(File.join(@folder, "config"))
    File.write(File.join(@folder, "config/pando.rb"), 'environment "production"')

    assert_nil(examined(*ROUTES))
    assert_equal(2, @status)
  end

  def test_other_requests_are_asked_in_any_environment
    assert_equal("production", examined("-e", "production").first)
  end

  def test_files_that_cannot_be_written_are_found_before_the_examination
    { "--output" => "/nowhere/x", "--write-baseline" => @folder }.each do |flag, file|
      assert_nil(examined(flag, file))
      assert_equal(2, @status)
      assert_match(/\Apando: #{flag}: .*cannot be written/, @err)
    end
  end

  def test_status
    assert_equal(0, status)
    @findings << finding(:fork_unsafe)
    assert_equal([0, 1], [status, status("--fail-on", "warning")])
    @evidence.could_not("lazy state", "no answer")
    assert_equal([3, 1], [status, status("--fail-on", "warning")])
    @findings << finding(:shared_socket)
    assert_equal(1, status)
  end

  def test_a_baseline_is_incomplete_if_a_check_could_not_be_done
    known = ["--write-baseline", File.join(@folder, "known.json")]
    @findings << finding(:shared_socket)
    assert_equal([0, 0], [status(*known), status("--baseline", known.last)])
    @evidence.could_not("lazy state", "no answer")
    assert_equal([3, 3], [status(*known), status("--baseline", known.last)])
  end

  def test_a_severity_that_cannot_fail_is_wrong_usage
    assert_equal(2, status("--fail-on", "note"))
    assert_match(/--fail-on: must be error or warning, but is "note"/, @err)
  end

  def test_headers_are_passed_on
    examined("--header", "Cookie: a=b; c=d", "--header", "Host:x")

    assert_equal({ "Cookie" => "a=b; c=d", "Host" => "x" }, @headers)
    assert_equal([nil, 2], [examined("--header", "Cookie"), @status])
    assert_match(/--header: must be like/, @err)
  end

  private

  def finding(kind) = Pando::ForkSafety::Finding.new(kind, subject: "it", message: "it is so")

  def status(*arguments)
    examined(*arguments)
    @status
  end

  # @return [Array, nil] the environment and the requests of the examination; nil if there was none
  def examined(*arguments, env: {})
    seen = nil
    examine = lambda do |config, requests:, headers:, **|
      seen = [config.environment, requests]
      @headers = headers
      Doctor::Report.new(@evidence, config, @findings, [Doctor::Request.root], 1.0)
    end
    out, err = Array.new(2) { StringIO.new }
    Doctor.stub(:examine, examine) do
      @status = Pando::CLI.run(["doctor", "-C", @folder, *arguments], out: out, err: err, env: env)
    end
    @out, @err = [out, err].map(&:string)
    seen
  end
end
