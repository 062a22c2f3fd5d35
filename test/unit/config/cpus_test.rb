# frozen_string_literal: true

require "test_helper"
require "etc"
require "pando/config"

class CPUsTest < Minitest::Test
  CPUs = Pando::Config::CPUs
  # Stands for a control group.
  Group = Struct.new(:cpu_quota)

  def test_a_quota_bounds_the_count
    { 1/2r => 1, 1r => 1, nil => Etc.nprocessors, 999r => Etc.nprocessors }.each do |quota, count|
      assert_equal count, CPUs.count(group: Group.new(quota)), quota.inspect
    end
  end

  def test_this_machine
    assert_operator CPUs.count, :>=, 1
  end
end
