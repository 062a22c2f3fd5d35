# frozen_string_literal: true

require "test_helper"
require "pando/sys"
require "pando/sys/special_pages"
require_relative "support/in_child"

# Huge and merged pages: what a process may have, and what it has.
class SysSpecialPagesTest < Minitest::Test
  include SysSupport::InChild

  Sys = Pando::Sys

  def test_a_process_is_looked_at
    pages = Sys::SpecialPages.of(Process.pid)

    assert_operator pages.huge, :>=, 0
    assert_includes [nil, true], pages.merged&.>=(0)
  end

  def test_who_is_gone_has_none
    Process.wait(pid = fork { exit!(0) })

    assert_nil Sys::SpecialPages.of(pid)
  end

  def test_without_huge_pages_and_so_are_its_children
    skip "this kernel does not tell" unless File.read("/proc/self/status").include?("THP_enabled")

    seen = in_child do
      Sys.disable_huge_pages!
      in_child { File.read("/proc/self/status")[/^THP_enabled:\s*(\d)/, 1] }
    end

    assert_equal "0", seen
  end

  def test_merging_is_inherited_or_refused
    seen = in_child do
      error_of { Sys.merge_same_pages! } || in_child { File.read("/proc/self/ksm_stat")[/^ksm_merge_any: (\w+)/, 1] }
    end

    assert_includes %w[yes Errno::EINVAL], seen
  end
end
