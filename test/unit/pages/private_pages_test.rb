# frozen_string_literal: true

require "test_helper"
require "pando/pages/private_pages"

# What each page of a process is for, told from recorded maps.
class PagesAddressSpaceTest < Minitest::Test
  # Ruby 3.1 on Debian 12; 3.3 with YJIT; a newer Ruby, which gives its mappings names. Shortened.
  MAPS = <<~MAPS
    5573de9e9000-5573deb73000 r--p 00448000 fe:00 11231888                   /usr/bin/ruby
    5573deb88000-5573deb8a000 rw-p 005e7000 fe:00 11231888                   /usr/bin/ruby
    5573deb8a000-5573deb9f000 rw-p 00000000 00:00 0
    5573dec55000-5573dec58000 r-xp 00000000 00:00 0
    5573dec58000-5573e1c55000 ---p 00000000 00:00 0
    5573f2836000-5573f2f28000 rw-p 00000000 00:00 0                          [heap]
    7f8a90000000-7f8a90021000 rw-p 00000000 00:00 0
    7f8a90021000-7f8a94000000 ---p 00000000 00:00 0
    7f8ab9e00000-7f8aba1b0000 rw-p 00000000 00:00 0
    7f8abf660000-7f8abf661000 ---p 00000000 00:00 0
    7f8abf661000-7f8abf702000 rw-p 00000000 00:00 0
    7f8abf800000-7f8abf801000 ---p 00000000 00:00 0                          [anon:Ruby:fiber_pool_allocate_memory]
    7f8abf801000-7f8abf8a2000 rw-p 00000000 00:00 0                          [anon:Ruby:fiber_pool_allocate_memory]
    7f8ac2e90000-7f8ac2e92000 rw-p 001d3000 fe:00 355428                     /usr/lib/x86_64-linux-gnu/libc.so.6
    7f8ac2e92000-7f8ac2ed2000 rw-p 00000000 00:00 0
    7f8ac3000000-7f8ac3100000 rw-p 00000000 00:00 0                          [anon:Ruby:rb_yjit_reserve_addr_space]
    7f8ac3200000-7f8ac3201000 rw-p 00000000 00:00 0                          [anon: glibc: malloc]
    7fea1f907000-7fea1f90b000 r--p 00000000 00:00 0                          [vvar]
    7ffcff610000-7ffcffe0f000 rw-p 00000000 00:00 0                          [stack]
  MAPS
  HEAP = [0x7f8ab9e10000].freeze

  { "Ruby's heap, by its word for where it is" => [0x7f8ab9e1f000, :ruby_heap],
    "beside a page of it" => [0x7f8ab9e20000, :anonymous],
    "what brk(2) has given" => [0x5573f2836000, :malloc],
    "an arena" => [0x7f8a90000000, :malloc],
    "compiled code" => [0x5573dec55000, :code],
    "compiled code by its name" => [0x7f8ac3000000, :code],
    "malloc by its name" => [0x7f8ac3200000, :malloc],
    "the first stack" => [0x7ffcff610000, :stack],
    "a stack above its guard" => [0x7f8abf661000, :stack],
    "a fiber's stack by its name" => [0x7f8abf801000, :stack],
    "a library's variables" => [0x7f8ac2e90000, :data],
    "those without a value" => [0x7f8ac2e92000, :data],
    "what lies behind them" => [0x7f8ac2eb2000, :anonymous],
    "nowhere" => [0x1000, :anonymous] }.each do |what, (address, kind)|
    define_method("test_#{what.tr(" ',()", "_")}") do
      assert_equal kind, space.kind(address / 4096, false)
    end
  end

  def test_what_the_kernel_calls_a_files_is_a_files
    assert_equal :file, space.kind(0x5573de9e9000 / 4096, true)
  end

  def test_pages_may_be_asked_for_in_any_order
    kinds = [0x7ffcff610000, 0x5573f2836000, 0x7f8abf661000].map { |address| asked.kind(address / 4096, false) }

    assert_equal %i[stack malloc stack], kinds
  end

  def test_extents_of_jemalloc_are_mallocs
    maps = "#{MAPS}7fea1f910000-7fea1f936000 r-xp 00001000 fe:00 354978  /usr/lib/libjemalloc.so.2\n"

    assert_equal :malloc, Pando::Pages::AddressSpace.new(maps, HEAP).kind(0x7f8ab9e20000 / 4096, false)
  end

  def test_ranges_are_those_that_can_be_accessed
    ranges = []
    space.each_range { |from, to| ranges << [from, to] }

    assert_includes ranges, [0x5573dec55000 / 4096, 0x5573dec58000 / 4096]
    refute(ranges.any? { |from, _| from == 0x5573dec58000 / 4096 })
  end

  def test_lines_that_are_none_are_passed_over
    huge = "#{"f" * 40}-#{"f" * 41} rw-p 0 0:0 0"
    hostile = ["\xFF\xFE-zz", "1-2 rwxp", "9-1 rw-p 0 0:0 0", huge, "", MAPS].join("\n")
    space = Pando::Pages::AddressSpace.new(hostile, HEAP)

    assert_equal :malloc, space.kind(0x5573f2836000 / 4096, false)
  end

  # aarch64 may have pages of 64 KiB: a number is of one of these, and a guard as large.
  def test_pages_of_another_size
    space = Pando::Pages::AddressSpace.new(<<~MAPS, [], page: 65_536)
      7f8abf660000-7f8abf670000 ---p 00000000 00:00 0
      7f8abf670000-7f8abf710000 rw-p 00000000 00:00 0
    MAPS
    ranges = []
    space.each_range { |from, to| ranges << [from, to] }

    assert_equal [[0x7f8abf67, 0x7f8abf71]], ranges
    assert_equal :stack, space.kind(0x7f8abf67, false)
  end

  private

  def space = Pando::Pages::AddressSpace.new(MAPS, HEAP)
  def asked = @asked ||= space
end
