# frozen_string_literal: true

require "test_helper"
require "fileutils"
require "tmpdir"
require "pando/server/allocator"

# Which allocator a cold boot is given, and why.
class AllocatorTest < Minitest::Test
  Library = Struct.new(:path, :version, :safe?, keyword_init: true)
  SAFE = Library.new(path: "/lib/libjemalloc.so.2", version: "5.3.0", safe?: true)
  OLD = Library.new(path: "/lib/libjemalloc.so.2", version: "5.2.1", safe?: false)

  def allocator(wanted = :auto, library: SAFE, environment: {}, loaded: nil, page: 4096)
    facts = { library: library, environment: environment, loaded: loaded, page: page }
    Pando::Server::Allocator.new(wanted, **facts)
  end

  def error = assert_raises(Pando::BootError) { yield.variables }.message

  def test_what_is_there_is_used
    %i[auto jemalloc].each do |wanted|
      variables = allocator(wanted).variables

      assert_equal SAFE.path, variables["LD_PRELOAD"]
      assert_includes variables["MALLOC_CONF"].split(","), "background_thread:false"
    end
  end

  def test_the_last_word_is_the_users
    conf = allocator(environment: { "MALLOC_CONF" => "dirty_decay_ms:0" }).variables["MALLOC_CONF"]

    assert_equal "dirty_decay_ms:0", conf.split(",").last
    assert_equal allocator.variables, allocator(environment: { "MALLOC_CONF" => "" }).variables
    assert_empty allocator(environment: { "LD_PRELOAD" => "/lib/other.so" }).variables
    assert_equal "#{SAFE.path}:/lib/other.so",
                 allocator(:jemalloc, environment: { "LD_PRELOAD" => "/lib/other.so" }).variables["LD_PRELOAD"]
  end

  # As in Rails' own image, which preloads one.
  def test_one_that_is_loaded_already_gets_its_options
    preload = { "LD_PRELOAD" => "libjemalloc.so" }
    options = { "MALLOC_CONF" => Pando::Server::Allocator::DEFAULTS }

    %i[auto jemalloc].product([SAFE, nil], ["5.3.0", "5.3.0-0-g54eaed1d", "6.0.0"]).each do |wanted, library, loaded|
      assert_equal options, allocator(wanted, library: library, environment: preload, loaded: loaded).variables
    end
    assert_equal "#{options["MALLOC_CONF"]},narenas:9",
                 allocator(environment: { "MALLOC_CONF" => "narenas:9" }, loaded: "5.3.0").variables["MALLOC_CONF"]
  end

  def test_who_has_an_old_one_or_wants_none_is_left_alone
    assert_empty allocator(:glibc).variables
    assert_empty allocator(:glibc, loaded: "5.3.0").variables
    assert_empty allocator(:jemalloc, loaded: "5.2.1-0-gea6b3e97").variables
    assert_empty allocator(:jemalloc, library: nil, loaded: "5.2.1").variables
  end

  def test_it_may_have_been_built_for_other_pages
    assert_empty allocator(page: 16_384).variables
    assert_includes allocator(page: 16_384).obstacle, "16384 bytes"
    assert_equal SAFE.path, allocator(:jemalloc, page: 16_384).variables["LD_PRELOAD"]
  end

  def test_what_cannot_be_had
    assert_empty allocator(library: nil).variables
    assert_empty allocator(library: OLD).variables
    assert_match(/\Aallocator :jemalloc, but there is no libjemalloc.*libjemalloc2/,
                 error { allocator(:jemalloc, library: nil) })
    assert_match(/version 5\.2\.1: before 5\.3 a fork may hang/, error { allocator(:jemalloc, library: OLD) })
  end
end

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
