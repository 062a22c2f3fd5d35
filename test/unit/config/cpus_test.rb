# frozen_string_literal: true

require "test_helper"
require "etc"
require "tempfile"
require "pando/config"

class CPUsTest < Minitest::Test
  CPUs = Pando::Config::CPUs

  def test_a_quota_bounds_the_count
    { "50000 100000\n" => 1, "100000 100000" => 1, "max 100000" => Etc.nprocessors, "" => Etc.nprocessors,
      "99900000 100000" => Etc.nprocessors }.each do |text, count|
      assert_equal count, with_quota(text) { |file| CPUs.count(quota_file: file) }, text
    end
  end

  def test_a_part_of_a_cpu_counts_as_one
    assert_equal 3, with_quota("250000 100000") { |file| CPUs.quota(file) }
  end

  def test_without_a_quota_all_count
    assert_equal Etc.nprocessors, CPUs.count(quota_file: "/nowhere/cpu.max")
  end

  private

  def with_quota(text)
    Tempfile.create("cpu.max") do |file|
      File.write(file.path, text)
      yield file.path
    end
  end
end
