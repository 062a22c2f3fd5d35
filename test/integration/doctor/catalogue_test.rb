# frozen_string_literal: true

require "test_helper"
require "support/doctor_run"
require "support/fault_stage"
require "tmpdir"

# Promise: the doctor finds each planted fault with its line, and nothing in its clean twin. An app in
# test/fixtures/doctor marks the lines itself: `# fault: KIND`.
class DoctorCatalogueTest < Minitest::Test
  parallelize_me!

  FIXTURES = File.expand_path("../../fixtures/doctor", __dir__)
  FAULTS = Dir.children(FIXTURES).select { |name| File.directory?(File.join(FIXTURES, name)) }.sort
  MARK = /# fault: (\w+)/

  FAULTS.each do |name|
    define_method(:"test_finds_#{name}") do
      planted = planted_in(name)
      run = examine(name, "config.ru")

      refute_empty(planted)
      assert_equal(planted, run.faults, run.out)
      assert_equal(1, run.status)
    end

    define_method(:"test_finds_nothing_in_the_clean_twin_of_#{name}") do
      run = examine(name, "clean.ru")

      assert_empty(run.faults, run.out)
      assert_equal(0, run.status)
    end
  end

  def test_there_are_twenty_at_least
    assert_operator(FAULTS.size, :>=, 20)
  end

  private

  def examine(name, rackup)
    Dir.mktmpdir do |folder|
      env = Support::FaultStage.env.merge("FAULT_FOLDER" => folder)
      Support::DoctorRun.new(rackup, "--format", "json", "--patience", "5", folder: File.join(FIXTURES, name), env: env)
    end
  end

  def planted_in(name)
    lines = File.readlines(File.join(FIXTURES, name, "config.ru"))
    lines.each.with_index(1).filter_map { |line, number| [line[MARK, 1], "config.ru:#{number}"] if line.match?(MARK) }
         .sort_by(&:to_s)
  end
end
