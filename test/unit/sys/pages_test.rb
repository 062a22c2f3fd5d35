# frozen_string_literal: true

require "test_helper"
require "rbconfig"
require "pando/sys"

# What of a process's memory is its own.
class SysPagesTest < Minitest::Test
  MEBIBYTE = 1024 * 1024

  # @return what the block returns, as an Array of Integers, in a forked child
  def in_child
    reader, writer = IO.pipe
    pid = fork do
      GC.disable # what it writes would be counted too
      reader.close
      writer.write(yield.join(" "))
      exit!(0)
    end
    writer.close
    reader.read.split.map(&:to_i).tap { Process.wait(pid) }
  end

  # In a program of its own: what the tests before have left in motion is private to a child of this one, and
  # what they have left free is no new page.
  # @return [Array<Integer>] that it writes
  def in_program(code)
    program = "require 'pando/sys'\nPRIVATE = Pando::Sys.method(:private_memory)\n#{code}"
    IO.popen([RbConfig.ruby, "-I", Support::Checkout.path("lib"), "-e", program], &:read).split.map(&:to_i)
  end

  def test_a_child_shares_until_it_writes
    shared, written, fresh = in_program(<<~RUBY)
      text = "x" * #{8 * MEBIBYTE}
      Process.wait(fork do
        first = PRIVATE.call.sum
        (0...text.bytesize).step(4096) { |at| text.setbyte(at, 1) }
        second = PRIVATE.call.sum
        more = "y" * #{4 * MEBIBYTE}
        puts [first, second - first, PRIVATE.call.sum - second, more.bytesize].join(" ")
      end)
    RUBY

    assert_operator shared, :<, 8 * MEBIBYTE
    assert_includes (7 * MEBIBYTE)..(10 * MEBIBYTE), written
    assert_includes (3 * MEBIBYTE)..(6 * MEBIBYTE), fresh
  end

  def test_objects_are_rubys_heap_and_texts_are_malloc
    heap, malloc = in_program(<<~RUBY)
      Process.wait(fork do
        GC.disable # what it writes would be counted too
        before = PRIVATE.call
        kept = Array.new(100_000) { Object.new }
        objects = PRIVATE.call
        texts = Array.new(4) { "z" * #{MEBIBYTE} }
        puts [objects[0] - before[0], PRIVATE.call[1] - objects[1], kept.size, texts.size].join(" ")
      end)
    RUBY

    assert_operator heap, :>, 3 * MEBIBYTE
    assert_operator malloc, :>, 3 * MEBIBYTE
  end

  def test_counting_leaves_no_trace
    grown = in_child do
      Pando::Sys.private_memory
      before = Pando::Sys.private_memory.sum
      20.times { Pando::Sys.private_memory }
      [Pando::Sys.private_memory.sum - before]
    end

    assert_operator grown.first, :<, 256 * 1024
  end
end
