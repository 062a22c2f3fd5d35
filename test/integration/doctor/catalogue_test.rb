# frozen_string_literal: true

require "test_helper"
require "support/doctor_run"
require "support/fault_stage"
require "tmpdir"

# Promise: the doctor finds each planted fault with its line, and nothing in its clean twin. An app in
# test/fixtures/doctor marks the lines itself: `# fault: KIND`, or `# warning: KIND` if it may be meant so.
class DoctorCatalogueTest < Minitest::Test
  parallelize_me!

  FIXTURES = File.expand_path("../../fixtures/doctor", __dir__)
  FAULTS = Dir.children(FIXTURES).select { |name| File.directory?(File.join(FIXTURES, name)) }.sort
  MARK = /# (?:fault|warning): (\w+)/
  FAULT = /# fault: (\w+)/

  FAULTS.each do |name|
    define_method(:"test_finds_#{name}") do
      planted = planted_in(name, MARK)
      faults = planted_in(name, FAULT)
      skip("a call by way of fiddle has a line of the fiddle gem there") if RUBY_VERSION >= "3.4" && fiddles?(name)
      run = examine(File.join(FIXTURES, name), "config.ru")

      refute_empty(planted)
      assert_equal(planted, run.faults, run.out)
      assert_equal([faults, faults.any? ? 1 : 0], [run.errors, run.status], run.out)
      # What needs an answer cannot be done where a request gets none, which is the fault.
      assert_empty(run.report["undone"]) unless planted.any? { |kind, _| kind == "request_stuck" }
    end
  end

  # All of them at once, each in a module of its own: a server that would report one of them fails.
  def test_finds_nothing_in_their_clean_twins
    Dir.mktmpdir do |folder|
      File.write(File.join(folder, "config.ru"), TWINS)
      File.write(File.join(folder, "requests"), FAULTS.map { |name| "/#{name}\n" }.join)
      run = examine(folder, "config.ru", "--requests", "requests")

      assert_empty(run.faults, run.out)
      assert_equal([0, FAULTS.size], [run.status, run.report["requests"].size])
    end
  end

  TWINS = <<~RUBY.freeze
    module Twins
      def self.load(name)
        twin = const_set(name.split("_").map(&:capitalize).join, Module.new { class << self; attr_accessor :app; end })
        twin.define_singleton_method(:run) { |app| self.app = app }
        file = File.join(#{FIXTURES.dump}, name, "clean.ru")
        twin.module_eval(File.read(file), file)
        twin.app
      end
    end

    APPS = #{FAULTS.inspect}.to_h { |name| ["/\#{name}", Twins.load(name)] }
    run ->(env) { APPS.fetch(env["PATH_INFO"]).call(env) }
  RUBY

  def test_there_are_twenty_at_least
    assert_operator(FAULTS.size, :>=, 20)
  end

  private

  def examine(application, *arguments)
    Dir.mktmpdir do |folder|
      env = Support::FaultStage.env.merge("FAULT_FOLDER" => folder)
      Support::DoctorRun.new(*arguments, "--format", "json", "--patience", "8", folder: application, env: env)
    end
  end

  def fiddles?(name) = File.read(File.join(FIXTURES, name, "config.ru")).include?("fiddle")

  def planted_in(name, mark)
    lines = File.readlines(File.join(FIXTURES, name, "config.ru"))
    lines.each.with_index(1).filter_map { |line, number| [line[mark, 1], "config.ru:#{number}"] if line.match?(mark) }
         .sort_by(&:to_s)
  end
end
