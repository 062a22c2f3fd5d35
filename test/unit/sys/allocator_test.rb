# frozen_string_literal: true

require "test_helper"
require "open3"
require "pando/server/allocator"

# Which malloc a process has, and free memory given back.
class SysAllocatorTest < Minitest::Test
  PROBE = 'require "pando/sys"; Pando::Sys.trim_memory; print Pando::Sys.jemalloc.inspect'

  def answer(environment)
    paths = $LOAD_PATH.grep(%r{/lib\z}).flat_map { |path| ["-I", path] }
    Open3.capture2({ "LD_PRELOAD" => nil, "RUBYOPT" => nil, **environment }, RbConfig.ruby, *paths, "-e", PROBE).first
  end

  def test_the_c_librarys
    assert_equal "nil", answer({})
  end

  def test_jemallocs
    library = Pando::Server::Jemalloc.newest or skip "there is no jemalloc"

    assert_includes answer("LD_PRELOAD" => library.path), "#{library.version}-"
  end
end
