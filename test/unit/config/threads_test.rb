# frozen_string_literal: true

require_relative "config_test_case"
require "pando/native"

# The configuration is read without the extension, which has the bounds that these numbers follow.
class ThreadsSettingTest < ConfigTestCase
  def test_no_more_threads_than_the_reactor_has_lanes
    assert_equal Pando::HTTP::Channel::LANES, Pando::Config::Threads::LIMIT
  end

  def test_each_has_a_job_in_the_scoreboard_beside_the_main_thread
    most = Pando::Sys::Row::JOBS - 1

    assert_equal most, Pando::Config.load(["--threads", most.to_s], env: {}, dir: @dir).threads
    assert_raises(Pando::ConfigError) { Pando::Config.load(["--threads", (most + 1).to_s], env: {}, dir: @dir) }
  end

  # RAILS_MAX_THREADS is meant for other programs and libraries, too, so no number in it stops a server.
  def test_the_variable_gives_as_many_as_fit
    assert_equal([64, 1, 1, 16], %w[100 0 -3 16].map { |number| threads_by_variable(number) })
    assert_equal 15, threads_by_variable("16", argv: %w[-w 64])
    assert_equal 1, threads_by_variable("16", argv: %w[-w 1024])
    assert_equal :auto, threads_by_variable("auto")
    assert_match(/\ARAILS_MAX_THREADS: threads must be a whole number/, error_of(env: { "RAILS_MAX_THREADS" => "x" }))
    assert_match(/must be 15 at most/, error_of(argv: %w[-w 64 --threads 16]))
  end

  # Those that say no number of their own share what the others leave.
  def test_the_variable_gives_pools_as_many_as_fit
    config = load_config("workers 30\npool :a, paths: ['/a'], workers: 19\n" \
                         "pool :b, paths: ['/b'], workers: 9, threads: 20", env: { "RAILS_MAX_THREADS" => "17" })

    assert_equal [16, 16, 20], [config, *config.pools.map(&:config)].map(&:threads)
  end

  def test_without_workers_the_variable_is_not_read
    config = load_config("workers 0\nnode(:own) { exit! }", env: { "RAILS_MAX_THREADS" => "many" })

    assert_equal [1, "default"], [config.threads, config.source(:threads)]
  end

  private

  def threads_by_variable(number, **rest) = load_config(env: { "RAILS_MAX_THREADS" => number }, **rest).threads
end
