# frozen_string_literal: true

require "test_helper"
require "pando/cluster/unreported_child"
require_relative "support/kin"

class UnreportedChildTest < Minitest::Test
  include ClusterSupport::Kin

  UnreportedChild = Pando::Cluster::UnreportedChild

  def inode(link) = link.to_io.stat.ino

  def test_who_holds_the_end_of_a_link
    _, theirs = order
    silent = fork { stay }
    @pids << silent
    mark = inode(theirs)
    theirs.close
    bystander = born

    assert_equal silent, UnreportedChild.find(mark, [])
    assert_nil UnreportedChild.find(mark, [silent, bystander.pid].compact)
    assert_nil UnreportedChild.find(mark + 1_000_000, [])
  end
end
