# frozen_string_literal: true

require "test_helper"
require "fileutils"
require "pando/server/allocator"
require "tmpdir"

# Which jemalloc there is, as its file says.
class JemallocTest < Minitest::Test
  Jemalloc = Pando::Server::Jemalloc
  COMMIT = "0123456789abcdef0123456789abcdef01234567"

  def setup
    @folder = Dir.mktmpdir("pando-test")
  end

  def teardown
    FileUtils.remove_entry(@folder)
  end

  # The head of a library for this machine, and what jemalloc has among its constants.
  def library(version, place = "one", head: File.binread("/proc/self/exe", 64))
    path = File.join(@folder, place, Jemalloc::FILE)
    FileUtils.mkdir_p(File.dirname(path))
    File.binwrite(path, [head, "\0" * 100, "3.0.0\0", version && "#{version}-0-g#{COMMIT}\0", "\0" * 9].join.b)
    path
  end

  def newest = Jemalloc.newest([File.join(@folder, "*")])

  def test_its_version
    library("5.3.0")

    assert_equal "5.3.0", newest.version
    assert_predicate newest, :safe?
  end

  def test_before_5_3_a_fork_may_hang
    %w[5.2.1 4.5.0 0.0.0].each do |version|
      library(version)

      refute_predicate newest, :safe?, version
    end
  end

  def test_later_ones_are_safe
    %w[5.3.1 5.10.0 6.0.0].each do |version|
      library(version)

      assert_predicate newest, :safe?, version
    end
  end

  def test_one_that_does_not_say_is_not_trusted
    library(nil)

    assert_nil newest.version
    refute_predicate newest, :safe?
  end

  def test_the_newest_of_several
    library("5.2.1", "one")
    path = library("5.10.0", "two")
    library("5.9.3", "three")

    assert_equal path, newest.path
  end

  def test_one_for_another_machine_is_none
    head = File.binread("/proc/self/exe", 64).tap { |bytes| bytes.setbyte(18, bytes.getbyte(18) ^ 1) }
    library("5.3.0", head: head)

    assert_nil newest
  end

  def test_what_is_no_library_is_none
    library("5.3.0", head: "INPUT(libother.so)")

    assert_nil newest
  end
end
