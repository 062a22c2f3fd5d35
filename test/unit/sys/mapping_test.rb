# frozen_string_literal: true

require "test_helper"
require "pando/server/jit"
require "pando/sys/mapping"

# The room that a process has for compiled code, as its memory map shows it.
class SysMappingTest < Minitest::Test
  Region = Pando::Sys::CodeRegion
  MAPS = <<~MAPS
    10000000-10003000 r-xp 00000000 00:00 0
    10003000-10004000 r-xp 00000000 00:00 0
    10004000-13000000 ---p 00000000 00:00 0
    13000000-13100000 r-xp 00000000 00:00 0                          [anon:code]
    14000000-14100000 r-xp 00001000 fe:00 7                          /usr/bin/ruby
    14100000-14200000 ---p 00000000 00:00 0
    15000000-15001000 r-xp 00000000 00:00 0
    15001000-15002000 rw-p 00000000 00:00 0
    15002000-15003000 ---p 00000000 00:00 0
    16000000-16002000 r-xp 00000000 00:00 0                          [vdso]
  MAPS

  def test_what_is_used_and_what_is_reserved_behind_it
    assert_equal [[0x4000, 0x3000000], [0x100000, 0x100000]], Region.all(MAPS).map(&:to_a)
    assert_empty Region.all("nonsense\n")
  end

  def test_of_a_process
    code = Pando::Server::Jit.code_bytes
    skip "there is no YJIT in this process" unless code.positive?
    region = Region.of(Process.pid, code)

    assert_operator region.used, :>=, code
    assert_operator region.bound, :>=, region.used
  end

  def test_a_process_without_so_much_code_has_none
    assert_nil Region.of(Process.pid, 1 << 40)
  end
end
