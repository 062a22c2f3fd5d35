# frozen_string_literal: true

require_relative "config_test_case"
require "pando/server"
require "pando/server/payload"

# `pool` lines: workers for some paths, with settings of their own.
class PoolLineTest < ConfigTestCase
  LINE = 'pool :reports, paths: ["/reports", "/exports"], workers: 3, timeout: 300, memory: "1G", threads: 4, ' \
         "refork: [50, 100], max_queue: 7, streaming: 60, canary: false"

  def test_what_the_line_says_and_what_it_leaves_to_the_settings
    config = load_config("workers 2\ntimeout 5, grace: 3\nmax_queue 9\n#{LINE}\npool :live, paths: \"/live\"")
    reports, live = config.pools

    assert_equal [%w[reports live], %w[/reports /exports]], [config.pools.map(&:name), reports.paths]
    assert_equal [3, 300.0, 3.0, 4, { after: [50, 100] }, 7, 60.0, 1024**3, false],
                 values(reports.config, :max_queue, :timeout_streaming, :memory_worker, :rollout_canary)
    assert_equal [1, 5.0, 3.0, 1, :auto, 9, nil, nil],
                 values(live.config, :max_queue, :timeout_streaming, :memory_worker)
    assert_equal [2, 5.0, 3.0, 1, :auto, 9], values(config, :max_queue)
  end

  def test_the_kinds_of_worker
    config = load_config("#{LINE}\nnode :sidekiq, count: 1")

    assert_equal %w[web reports sidekiq], Pando::Server::Kinds.names(config)
    options = Pando::Server::PathPayload.new(Pando::Server.new(config), config.pools.first).options
    assert_equal [3, true, false, [], 302.0],
                 [options.workers, options.shared, options.auto_workers, options.services, options.longest_request]
    assert_equal [50], [Pando::Server::Kinds.policy(config, "reports").threshold(0)]
  end

  def test_a_process_that_must_not_run_the_file_gets_the_same
    config = load_config(LINE)
    said = config.pool_lines.first.to_h.transform_keys(&:to_s).transform_values(&:to_s)
    again = Pando::Config::PoolLine.from(said).pool(load_config(""))

    assert_equal config.pools.first.paths, again.paths
    assert_equal values(config.pools.first.config, :max_queue, :memory_worker),
                 values(again.config, :max_queue, :memory_worker)
  end

  def test_errors_name_the_line_and_the_remedy
    { "pool" => /config.pando.rb:1: pool needs one name, a Symbol, and paths: pool :reports/,
      "pool(:a, paths: '/a') { }" => /pool takes no block/,
      "pool :a, paths: '/'" => /is every path: the workers of the server serve it/,
      "pool :a, paths: '/x*'" => %r{"/x\*" is not a path},
      "pool :a, path: '/x'" => /has no option path:\. Did you mean paths/,
      "pool :mold, paths: '/a'" => /has a name that Pando uses itself/,
      "pool :a, paths: (1..400).map { |number| format('/path%04d', number) }" =>
        /pool :a has too many paths: all pools together have \d+ bytes too many/,
      "pool :reports" => %r{needs paths:, such as paths: \["/reports"\]},
      "pool :web, paths: '/a'" => /has a name that Pando uses itself/,
      "pool :Bad, paths: '/a'" => /needs a name in small letters such as :reports/,
      "pool :a, paths: ['a']" => /paths: "a" is not a path: write it from the first slash on/,
      "pool :a, paths: '/a?b'" => %r{"/a\?b" is not a path},
      "pool :a, paths: []" => /paths: must be a list of paths/,
      "pool :a, paths: '/a', worker: 2" => /has no option worker:\. Did you mean workers/,
      "pool :a, paths: '/a', workers: :auto" => /workers: must be/,
      "pool :a, paths: '/a', timeout: 'x'" => /timeout: must be/,
      "pool :a, paths: '/a'\npool :a, paths: '/b'" => /rb:2: pool :a has the name of another pool .*rb:1/,
      "pool :a, paths: '/a'\npool :b, paths: '/a'" => %r{rb:2: pool :b has the path /a of another pool .*rb:1},
      "node(:a) { 1 }\npool :a, paths: '/a'" => /rb:2: pool :a has the name of a node .*rb:1/,
      "memory hard: 512.mb\npool :a, paths: '/a', memory: 1.gb" =>
        /pool :a needs a higher limit: memory hard: must be more than worker:, 1.gb, but is 512.mb/,
      "pool :a, paths: '/a'\nreactor false" => /pool :a needs the reactor/,
      "pool :a, paths: '/a'\nworkers 0\nnode :sidekiq" => /no workers serve the others/,
      "pool :a, paths: '/a', workers: 20, threads: 64" => /pool :a threads must be/,
      "threads 64\nworkers 8\npool :a, paths: '/a', workers: 8" => /threads and those of the pools are more than 1024/,
      "workers 600\npool :a, paths: '/a', workers: 423" => /threads and those of the pools are more than 1024/,
      (1..16).map { |number| "pool :p#{number}, paths: '/#{number}'\n" }.join => /is one too many: the limit is 15/ }
      .each { |text, error| assert_match(error, error_of(text), text) }
  end

  def test_the_flag_for_direct_mode_is_refused_like_the_setting
    assert_match(/pool :reports needs the reactor/, error_of(LINE, argv: %w[--reactor false]))
  end

  private

  def values(config, *more)
    [:workers, :timeout, :timeout_grace, :threads, :refork, *more].map { |name| config.public_send(name) }
  end
end
