# frozen_string_literal: true

require "test_helper"
require "open3"
require "support/c_program"

# What of sys/ needs no Ruby, tried in C under the sanitizers: test/c/sys_hostile.c.
class SysHostileTest < Minitest::Test
  def test_nothing_leads_out_of_bounds_or_leaks
    unless Support::CProgram.supported?(Support::CProgram::ADDRESS)
      skip "the compiler has no address and undefined-behaviour sanitizers"
    end
    output, status = Open3.capture2e(Support::CProgram.path("sys_hostile", %w[sys/*.c]))
    assert_predicate status, :success?, output
    assert_equal "all hold\n", output
  end
end
