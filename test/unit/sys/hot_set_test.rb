# frozen_string_literal: true

require "test_helper"
require "open3"
require "rbconfig"
require "support/c_program"
require "pando/sys"

# The pages that one child of a process has written to, populated in the next one.
class SysHotSetTest < Minitest::Test
  SOURCES = %w[sys/hot_set.c sys/maps.c sys/pagemap.c sys/populate.c sys/present.c].freeze
  PAGES = 512

  # In C, under the sanitizers: test/c/hot_set.c.
  def test_finds_what_was_written_and_touches_nothing_else
    unless Support::CProgram.supported?(Support::CProgram::ADDRESS)
      skip "the compiler has no address and undefined-behaviour sanitizers"
    end
    output, status = Open3.capture2e(Support::CProgram.path("hot_set", SOURCES))
    skip output if status.success? && output.start_with?("this kernel")

    assert_predicate status, :success?, output
    assert_equal "all hold\n", output
  end

  # In a program of its own, without a compiler or a collector, which write too.
  def test_a_sibling_need_not_fault
    skip "no MADV_POPULATE_WRITE" unless Pando::Sys::HotSet.supported?
    bytes, given, seconds, before, after = in_program(<<~RUBY)
      GC.disable
      text = "x" * #{PAGES * 4096}
      write = -> { 0.step(text.bytesize - 1, 4096) { |at| text.setbyte(at, 1) } }
      faults = -> { File.read("/proc/self/stat").rpartition(")").last.split[7].to_i }
      ready, told = IO.pipe
      child = fork { write.call; told.write("."); sleep }
      ready.read(1)
      set = Pando::Sys::HotSet.new.observe(File.open("/proc/\#{child}/pagemap"))
      Process.kill(:KILL, child)
      count = lambda { |&given|
        Process.wait(fork do
          done = given&.call
          first = faults.call
          write.call
          told.write([*done, faults.call - first].join(" "))
        end)
        ready.readpartial(999)
      }
      untouched = count.call
      puts [set.bytes, count.call { set.populate(1 << 30, 10.0) }.split.insert(2, untouched)].join(" ")
    RUBY

    assert_operator bytes, :>=, (PAGES - 1) * 4096
    assert_includes ((PAGES - 1) * 4096)..bytes, given
    assert_operator seconds, :>, 0
    assert_operator before, :>=, PAGES - 1
    assert_operator after, :<, PAGES / 4
  end

  def test_what_is_no_pagemap_leaves_it_empty
    set = Pando::Sys::HotSet.new
    File.open(File::NULL) { |file| set.observe(file) }

    assert_equal [0, 0], [set.bytes, set.ranges]
    assert_equal 0, set.populate(1 << 30, 1.0).first
    assert_raises(Errno::EBADF) { set.observe(-1) }
    assert_same set, set.clear
  end

  private

  def in_program(code)
    command = [RbConfig.ruby, "-I", Support::Checkout.path("lib"), "-r", "pando/sys", "-e", code]
    IO.popen([{ "RUBY_YJIT_ENABLE" => nil, "RUBYOPT" => nil }, *command], &:read)
      .split.map { |word| word.include?(".") ? word.to_f : word.to_i }
  end
end
