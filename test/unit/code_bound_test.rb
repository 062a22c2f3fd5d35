# frozen_string_literal: true

require "test_helper"
require "pando/code_bound"

# What is proposed for the bound of YJIT's code.
class CodeBoundTest < Minitest::Test
  MIB = 1024 * 1024

  def bound(used, bound, requests) = Pando::CodeBound.new((used * MIB).to_i, bound * MIB, requests)

  def test_a_full_region_is_to_be_twice_as_large
    assert_equal "47.0 MiB of 48.0 MiB for code in use; that is full, what is called later is not compiled: " \
                 "--yjit-exec-mem-size=96", bound(47, 48, 10).to_s
  end

  def test_one_far_above_what_is_used_by_whoever_has_served_long
    assert_equal "8.1 MiB of 48.0 MiB for code in use; --yjit-exec-mem-size=13 is enough", bound(8.1, 48, 1000).to_s
    assert_nil bound(8.1, 48, 999).advice
    assert_nil bound(20, 48, 5000).advice
  end

  def test_without_a_compiler_there_is_none
    assert_nil Pando::CodeBound.of(Process.pid, 0, 1)
    assert_nil Pando::CodeBound.of(Process.pid, nil, 1)
    assert_nil Pando::CodeBound.of(0, 1, 1)
  end
end
