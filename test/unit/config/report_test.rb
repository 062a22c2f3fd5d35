# frozen_string_literal: true

require_relative "config_test_case"
require "json"
require "pando/config/report"

class ReportTest < ConfigTestCase
  FILE = <<~RUBY
    listen "unix:tmp/a.sock", mode: 0o660
    listen 3000, backlog: 64, defer_accept: false
    refork after: [50, false]
    timeout 1.5, grace: 0
    oom_score_adj false
    after_worker_fork { }
    service(:mailer) { }
    on(:worker_ready) { }
    pool :slow, paths: ["/a", "/b/"], timeout: 300, refork: [50, 100], memory: "1G"
    pool :"long-polls", paths: "/c", workers: 3, threads: 16, timeout: false, canary: { requests: 5 }
    node :sidekiq, count: 3, queues: %w[a b], timeout: 60
    node(:custom, refork: [7]) { }
  RUBY

  def test_text_shows_each_setting_with_its_source
    lines = report(argv: %w[-w 3], env: { "RACK_ENV" => "test" }).text.lines(chomp: true).map(&:squeeze)

    ['listen "unix:tmp/a.sock", mode: 0660 # config/pando.rb:1',
     'listen "0.0.0.0:3000", backlog: 64, defer_accept: false # config/pando.rb:2',
     "workers 3 # -w", 'environment "test" # RACK_ENV', "stop_timeout 25 # default",
     "# config file #{@dir}/config/pando.rb (default)", "# service :mailer (config/pando.rb:7)"].each do |line|
      assert_includes lines, line.squeeze
    end
  end

  def test_text_says_what_auto_comes_to
    assert_match(/^workers :auto +# default \(#{Pando::Config::CPUs.count}\)$/, report.text)
  end

  # RAILS_MAX_THREADS may name more than fit.
  def test_the_number_of_threads_is_the_one_that_applies
    many = report("", argv: %w[-w 64], env: { "RAILS_MAX_THREADS" => "16" })

    assert_match(/^threads 15 +# RAILS_MAX_THREADS$/, many.text)
    assert_equal [15, "RAILS_MAX_THREADS"],
                 JSON.parse(many.json).dig("settings", "threads").values_at("value", "source")
    assert_match(/^threads 1 +# RAILS_MAX_THREADS$/,
                 report("", argv: %w[--reactor false], env: { "RAILS_MAX_THREADS" => "auto" }).text)
  end

  def test_text_is_a_config_file_that_sets_the_same
    before = load_config(FILE)
    after = load_config(report.text)

    Pando::Config::Settings.all.each do |setting|
      assert_equal [before.public_send(setting.name)], [after.public_send(setting.name)], setting.name
    end
    assert_equal before.listen.map(&:options), after.listen.map(&:options)
    assert_equal(*[before, after].map { |config| config.pools.map { |pool| [pool.name, pool.paths, own(pool)] } })
  end

  def test_text_shows_pools_and_nodes
    lines = report.text.lines(chomp: true)

    [%(pool :slow, paths: ["/a", "/b/"], workers: 1, timeout: 300, refork: [50, 100], memory: 1.gb  ) +
      "# config/pando.rb:9", "# Job nodes"].each { |line| assert_includes lines, line }
    assert_match(/^# node :sidekiq, name: "sidekiq", count: 3, .*queues: \["a", "b"\], timeout: 60, .*rb:11\)$/,
                 report.text)
    assert_match(/^# node of your own, name: "custom", count: 1, .*refork: \[7\], .*rb:12\)$/, report.text)
    refute_match(/^# (Pools|Job nodes)/, report("workers 2").text)
  end

  # config/queue.yml says them.
  def test_a_node_with_a_queue_file_has_no_queues_of_its_own
    shown = report("node :solid_queue, queue_file: true, count: 2")

    assert_match(/^# node :solid_queue, .*count: 2/, shown.text)
    refute_match(/queues:|concurrency:/, shown.text)
    assert_empty(JSON.parse(shown.json).fetch("nodes").first.keys & %w[queues concurrency])
    assert_match(/ concurrency: 5, queues: /, report("node :solid_queue, queue_file: false").text)
  end

  def test_json_has_each_value_of_a_pool_with_its_source
    slow = JSON.parse(report(argv: %w[--threads 2]).json).fetch("pools").first

    assert_equal(["slow", ["/a", "/b/"], "config/pando.rb:9"], slow.values_at("name", "paths", "source"))
    { "workers" => [1, "default"], "threads" => [2, "--threads"], "timeout" => [300.0, "config/pando.rb:9"],
      "grace" => [0.0, "config/pando.rb:4"], "refork" => [{ "after" => [50, 100] }, "config/pando.rb:9"] }
      .each { |key, expected| assert_equal expected, slow["settings"][key].values_at("value", "source"), key }
  end

  def test_json_has_the_nodes
    sidekiq, custom = JSON.parse(report.json).fetch("nodes")

    assert_equal(["sidekiq", 3, %w[a b], 60.0, "config/pando.rb:11"],
                 sidekiq.values_at("runner", "count", "queues", "timeout", "source"))
    assert_equal([nil, "custom", { "after" => [7] }], custom.values_at("runner", "name", "refork"))
  end

  def test_json
    shown = JSON.parse(report(argv: %w[-t 5]).json)

    assert_equal @dir, shown["directory"]
    assert_equal({ "value" => 5.0, "unit" => "seconds", "source" => "-t" }, shown["settings"]["timeout"])
    assert_equal({ "value" => { "after" => [50, false] }, "source" => "config/pando.rb:3" },
                 shown["settings"]["refork"])
    assert_equal({ "address" => "unix:#{@dir}/tmp/a.sock", "mode" => 0o660 },
                 shown["settings"]["listen"]["value"].first)
    assert_equal({ "kind" => "event", "name" => "worker.ready", "source" => "config/pando.rb:8" }, shown["blocks"].last)
  end

  private

  def own(pool) = Pando::Config::Settings.all.map { |setting| [setting.name, pool.config.public_send(setting.name)] }

  def report(text = FILE, **rest)
    Pando::Config::Report.new(load_config(text, **rest))
  end
end
