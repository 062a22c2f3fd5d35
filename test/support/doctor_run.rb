# frozen_string_literal: true

require "json"
require "open3"
require "rbconfig"
require "support/app_files"
require "support/checkout"
require "tmpdir"

module Support
  # `pando doctor`, run as a user would.
  class DoctorRun
    TIME_LIMIT = "300" # seconds; a loaded machine took 91 for what takes 20 alone

    attr_reader :out, :err, :status

    # @param arguments [Array<String>] @param env [Hash{String => String}] @param folder [String] the working directory
    def initialize(*arguments, env: {}, folder: Dir.pwd)
      ruby = [RbConfig.ruby, "-W0", "-I", Checkout.path("lib")]
      @out, @err, status = Open3.capture3(env, "timeout", TIME_LIMIT, *ruby, Checkout.path("exe/pando"), "doctor",
                                          *arguments, chdir: folder)
      @status = status.exitstatus
    end

    # The report of a run with --format json.
    def report
      @report ||= JSON.parse(out)
    rescue JSON::ParserError
      raise "no report; the doctor said:\n#{out}\n#{err}"
    end

    # @return [Array<Array(String, String)>] kind and line of the errors and warnings
    def faults = places { |one| one["severity"] != "note" }
    # @return [Array<Array(String, String)>] kind and line of the findings that make it fail
    def errors = places { |one| one["severity"] == "error" }

    private

    def places(&)
      report["findings"].select(&).map { |one| one.values_at("kind", "location") }.sort_by(&:to_s)
    end
  end

  # For tests that examine an application of a few lines, in a folder of its own.
  module DoctorCase
    include AppFiles

    CLEAN = "run ->(env) { [200, {}, [env['PATH_INFO']]] }"

    def setup
      @folder = Dir.mktmpdir("pando doctor t\u00e9st")
    end

    def teardown
      FileUtils.rm_rf(@folder)
    end

    private

    def doctor(app, *arguments, env: {})
      write("config.ru", app)
      DoctorRun.new(*arguments, folder: @folder, env: env)
    end
  end
end
