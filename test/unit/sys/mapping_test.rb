# frozen_string_literal: true

require "test_helper"
require "rbconfig"
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
    skip "this Ruby has no YJIT that can be enabled" unless defined?(RubyVM::YJIT.enable)
    code, used, bound = compiled_region

    assert_operator code, :>, 0
    assert_operator used, :>=, code
    assert_operator bound, :>=, used
  end

  def test_a_process_without_so_much_code_has_none
    assert_nil Region.of(Process.pid, 1 << 40)
  end

  private

  # @return [Array<Integer>] of a Ruby with YJIT: its code, and the region's used and reserved bytes
  def compiled_region
    script = <<~RUBY
      require "pando/server/jit"
      require "pando/sys/mapping"
      1000.times { "compiled".upcase }
      code = Pando::Server::Jit.code_bytes
      region = Pando::Sys::CodeRegion.of(Process.pid, code)
      puts [code, region.used, region.bound]
    RUBY
    IO.popen([RbConfig.ruby, "--yjit", "-I", Support::Checkout.path("lib"), "-e", script], &:readlines).map(&:to_i)
  end
end
