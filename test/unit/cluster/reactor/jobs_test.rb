# frozen_string_literal: true

require "test_helper"
require "pando/cluster/reactor/supervisor"
require_relative "../support/fakes"

# What a report says the workers are at.
class ReactorJobsTest < Minitest::Test
  def setup
    @roster = ClusterSupport.roster
    @jobs = Pando::Cluster::Reactor::Jobs.new(@roster)
  end

  def worker(path = nil)
    child = @roster.admit(:worker, @roster.size, 0, ClusterSupport::FakeLink.new, nil)
    child.adopt(ClusterSupport::FakePidfd.new(1000 + @roster.size))
    child.become_ready
    child.row.start_job("GET", path, nil, nil) if path
    child
  end

  def test_without_a_worker_nothing_stands_still
    assert_nil @jobs.standstill
    assert_nil @jobs.to_line
    assert_equal 0, @jobs.workers
  end

  def test_an_idle_worker_is_no_standstill
    worker("/slow")
    worker

    assert_nil @jobs.standstill
    assert_equal "GET /slow", @jobs.to_line
    assert_equal 2, @jobs.workers
  end

  def test_a_standstill_lasts_until_another_request_begins
    slow = worker("/slow")
    before = @jobs.standstill
    refute_nil before
    assert_equal before, @jobs.standstill

    slow.row.finish_job
    slow.row.start_job("GET", "/slow", nil, nil)
    refute_equal before, @jobs.standstill
  end

  def test_the_most_frequent_are_named_and_the_others_counted
    %w[/b /a /b /c /d /c /b].each { |path| worker(path) }

    assert_match %r{\AGET /b \(3\), GET /c \(2\), GET /[ad], and 1 more\z}, @jobs.to_line
  end
end
