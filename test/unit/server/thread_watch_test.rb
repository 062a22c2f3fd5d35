# frozen_string_literal: true

require "test_helper"
require "support/in_child"
require "pando/fork_safety"
require "pando/server/thread_watch"

# A worker, its mold and its children: the parts that are played by one process after another.
class ThreadWatchTest < Minitest::Test
  include Support::InChild

  Config = Struct.new(:fork_safety_threads, :rollout_canary)

  # Stands for a role and its payload: remembers what is told.
  Role = Struct.new(:role, :requests, :told) do
    def payload = self
    def report_thread(_role, kind, text) = told << [kind, *text.lines(chomp: true)]
    def kinds = told.map(&:first)
  end

  # A thread that another test has left behind is none of those that are looked for here.
  def setup
    @threads = []
    Thread.list.each { |thread| thread.thread_variable_set(:fork_safe, true) }
  end

  def teardown
    @watch&.after_fork(mold) # it notes no more threads
    @threads.each(&:kill).each(&:join)
  end

  def test_a_thread_that_nobody_has_forked_yet_is_to_be_tried_out
    watch = watching
    run = background
    watch.before_fork(worker, :mold)

    kind, key, reason, advice = worker.told.fetch(0)

    assert_equal([1, :thread_tried, run], [worker.told.size, kind, key])
    assert_match(/\ANo forked process has the thread/, reason)
    assert_match(/before_fork/, advice)
  end

  def test_a_thread_that_ends_for_a_hook_just_before_is_not
    watch = watching
    background
    @threads.each(&:kill)
    watch.before_fork(worker, :mold)

    assert_empty(worker.told)
  end

  def test_in_the_child_it_has_come_back_as_soon_as_one_of_its_origin_begins
    told = forked_from_worker do |watch, child|
      watch.tick(child)
      background.then { watch.tick(child) }
      child.requests = 100
      watch.tick(child)
      watch.before_fork(child, :mold)
    end

    assert_equal(["thread_back"], told.map(&:first), "and it is no reason against the next fork")
  end

  def test_even_if_it_has_ended_by_then
    told = forked_from_worker do |watch, child|
      background
      @threads.each(&:kill).each(&:join)
      watch.tick(child)
    end

    assert_equal(["thread_back"], told.map(&:first))
  end

  def test_or_if_a_hook_has_started_it
    told = forked_from_worker(begun: true) { |watch, child| watch.born(child) }

    assert_equal(["thread_back"], told.map(&:first))
  end

  def test_it_is_missing_after_so_many_requests_as_the_canary_serves
    told = forked_from_worker do |watch, child|
      child.requests = 19
      watch.tick(child)
      child.told << [:in_time]
      child.requests = 20
      2.times { watch.tick(child) }
    end

    assert_equal(%w[in_time thread_missing], told.map(&:first))
    assert_match(/\ANo forked process/, told.last[2])
  end

  def test_and_after_more_where_it_began_late
    told = forked_from_worker(late: 50) do |watch, child|
      child.requests = 152
      watch.tick(child)
      child.told << [:in_time]
      child.requests = 153
      watch.tick(child)
    end

    assert_equal(%w[in_time thread_missing], told.map(&:first))
  end

  def test_the_monitor_is_told_whether_one_that_is_lost_lives_here
    watch = watching
    run = background
    watch.lost(worker, run)
    @threads.each(&:kill).each(&:join)
    watch.lost(worker, run)
    background
    watch.lost(worker, run)

    assert_equal(%i[thread_held thread_gone thread_held], worker.kinds)
  end

  def test_and_of_what_has_changed_by_itself
    watch = watching
    watch.lost(worker, run = background)
    @threads.each(&:kill).each(&:join)
    wait_until { watch.tick(worker) || worker.told.last == [:thread_gone, run] }

    assert_equal([[:thread_held, run], [:thread_gone, run]], worker.told)
  end

  def test_what_the_setting_allows_is_no_matter
    [[:allow], [:refuse, "thread_watch_test.rb"]].each do |policy, *allowed|
      watch = watching(policy, *allowed)
      background
      watch.before_fork(worker, :mold)
    end

    assert_empty(worker.told)
  end

  def test_to_be_reported_it_is_not_tried_but_waited_for
    told = forked_from_worker(policy: :report) do |watch, child|
      child.requests = 20
      watch.tick(child)
    end

    assert_equal(["thread_missing"], told.map(&:first))
    assert_empty(worker.told)
  end

  def test_what_the_application_starts_when_it_is_loaded_has_more_time
    told = in_child do
      watch = watch_with(:refuse, canary: { requests: 4 })
      background
      watch.loaded
      watch.before_fork(mold, :worker)
      watch.after_fork(worker)
      [19, 20].each do |requests|
        worker.requests = requests
        watch.tick(worker)
        worker.told << [requests]
      end
      worker.told
    end

    assert_equal([[19], ["thread_missing"], [20]], told.map { |one| one.first(1) }, told.inspect)
  end

  def test_with_fail_it_keeps_the_mold_from_booting
    watch = watch_with(:fail)
    watch.boot
    background
    error = assert_raises(Pando::Server::ThreadWatch::Refused) { watch.boot }

    assert_match(/refused by fork_safety threads:/, error.message)
  end

  private

  def worker = @worker ||= Role.new(:worker, 0, [])
  def mold = Role.new(:mold, 0, [])

  # In a worker without a history.
  def watching(...) = @watch = watch_with(...).tap { |watch| watch.after_fork(worker) }

  # The test's own runner has threads.
  def watch_with(policy = :refuse, *allowed, canary: false)
    Pando::Server::ThreadWatch.new(Config.new({ allow: ["minitest", *allowed], otherwise: policy }, canary))
  end

  # @return [String] its key
  def background
    @threads << Thread.new { sleep }
    wait_until { @threads.last.status == "sleep" }
    Pando::ForkSafety::Audit::LiveThread.new(@threads.last).key
  end

  # @param late [Integer] requests that the worker serves before it starts its thread
  # @param begun [Boolean] whether the thread is there before the child looks
  # @return [Array<Array>] what the worker's child tells while the block runs
  def forked_from_worker(policy: :refuse, late: 0, begun: false)
    watch = watching(policy)
    worker.requests = late
    background
    watch.before_fork(worker, :mold)
    in_child do
      @threads = []
      watch.after_fork(mold)
      watch.before_fork(mold, :worker)
      child = Role.new(:worker, 0, [])
      background if begun
      watch.after_fork(child)
      yield watch, child
      child.told
    end
  end
end
