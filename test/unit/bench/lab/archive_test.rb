# frozen_string_literal: true

require_relative "../bench_helper"
require "tmpdir"
require "support/lab/archive"
require "support/lab/options"

# Which runs count as done.
class LabArchiveTest < Minitest::Test
  def setup
    @folder = Dir.mktmpdir
    @archive = Bench::Lab::Archive.new(@folder)
  end

  def teardown = FileUtils.rm_rf(@folder)

  def test_a_finished_run_is_found_again
    refute_includes @archive, variant
    @archive.store(variant, { requests: 5 })

    assert_includes @archive, variant
    refute_includes @archive, variant("--workers", "8")
    assert_equal([[4, 1, 5]], @archive.runs.map { |run| run.values_at(:workers, :seed, :requests) })
  end

  def test_a_file_of_before_counts_by_what_it_says
    write(workers: 4, clients: 4, seed: 1, settings: ["log_format :json"])
    assert_includes @archive, variant

    write(workers: 8, clients: 4, seed: 1, settings: ["log_format :json"])
    refute_includes @archive, variant
    write(workers: 4, clients: 4, seed: 1, settings: ["log_format :json", "threads 2"])
    refute_includes @archive, variant
  end

  def test_a_file_of_before_with_other_settings_is_kept_under_its_own_name
    write(workers: 8, clients: 4, seed: 1, settings: ["log_format :json"])
    @archive.store(variant, { requests: 5 })

    assert_equal([4, 8], @archive.runs.map { |run| run[:workers] }.sort)
    assert_includes @archive, variant
    assert_includes @archive, variant("--workers", "8")
  end

  private

  def variant(*arguments) = Bench::Lab::Options.new(["--servers", "pando-auto", *arguments]).variants.first

  def write(**values)
    File.write(File.join(@folder, "#{variant.id}.json"),
               JSON.generate({ app: "rails", server: "pando-auto", **values }))
  end
end
