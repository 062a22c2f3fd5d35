# frozen_string_literal: true

require "test_helper"
require "support/in_child"
require "pando/cluster"
require "pando/cluster/context"
require "pando/cluster/payload"
require "pando/cluster/worker"
require "pando/sys"
require_relative "support/clock"

# What a worker writes into its row of the scoreboard.
class ClusterWorkerTest < Minitest::Test
  include Support::InChild
  include ClusterSupport::Clock

  def setup
    @board = Pando::Sys::Scoreboard.create(2)
    @row = @board.row(1).claim(1, 0, 0)
    @worker = Pando::Cluster::Worker.allocate
    @worker.instance_variable_set(:@row, @row)
    @worker.instance_variable_set(:@title, "a worker of no cluster")
    @worker.instance_variable_set(:@context, Pando::Cluster::Context.new(payload: Pando::Cluster::Payload.new))
  end

  def counted = [@row.requests, @row.failures]

  # An app's status of 500, a body that raises, a time that is over: one request that has failed. In a child, for a
  # worker names its process.
  def test_a_job_fails_once_and_when_it_is_done
    during, after = in_child do
      @row.start_job("GET", "/", nil, nil)
      2.times { @worker.job_failed }
      during = counted
      @worker.job_finished
      [during, counted]
    end

    assert_equal [0, 0], during
    assert_equal [1, 1], after
  end

  def test_the_next_one_has_not
    after = in_child do
      @worker.job_failed
      2.times do
        @row.start_job("GET", "/", nil, nil)
        @worker.job_finished
      end
      counted
    end

    assert_equal [2, 1], after
  end

  Work = Struct.new(:idles) do
    def idle = self.idles += 1
  end
  Link = Struct.new(:receive)

  def test_orders_without_end_do_not_keep_it_from_looking_after_its_work
    link = Link.new(:nothing)
    work = Work.new(0)
    { link: link, work: work, idle_by: 0.0, leaving: false }.each do |name, value|
      @worker.instance_variable_set(:"@#{name}", value)
    end
    seen = [0.0, 0.1, 0.1, 10.0, 0.1].map do |seconds|
      elapse(seconds)
      @worker.send(:attend, [link])
      work.idles
    end

    assert_equal([1, 1, 1, 2, 2], seen)
  end

  def test_what_has_become_of_it_is_sampled
    jobs = in_child do
      3.times { @row.start_job("GET", "/", nil, nil) || @worker.job_finished }
      [@row.sample.jobs, @worker.send(:sampler).catch_up || @row.sample.jobs]
    end

    assert_includes 2..3, jobs.first
    assert_equal 3, jobs.last
  end
end
