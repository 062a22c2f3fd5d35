# frozen_string_literal: true

require_relative "config_test_case"
require "pando/config/node_line"

# `node` lines of a config file.
class ConfigNodeLineTest < ConfigTestCase
  def kinds(text) = load_config(text).nodes

  def test_what_holds_where_a_line_says_nothing
    kind = kinds("node :sidekiq").first

    assert_equal ["sidekiq", :sidekiq, 1, 5, %w[default], [], 600.0, 60.0, false, :auto, nil, {}, "config/pando.rb:1"],
                 [kind.name, kind.runner, kind.count, kind.concurrency, kind.queues, kind.files, kind.timeout,
                  kind.quiet_timeout, kind.exclusive, kind.refork, kind.memory, kind.options, kind.source]
  end

  def test_what_a_line_says
    kind = kinds("node :sidekiq, name: :mailers, count: 4, concurrency: 10, queues: %w[mail low], " \
                 'require: "./jobs.rb", ' \
                 "timeout: false, quiet_timeout: 5, refork: [100, false], memory: 200.mb, weights: { mail: 3 }").first

    assert_equal ["mailers", 4, 10, %w[mail low], [File.join(@dir, "jobs.rb")], nil, 5.0, { after: [100, false] },
                  200 * (1024**2), { weights: { mail: 3 } }],
                 [kind.name, kind.count, kind.concurrency, kind.queues, kind.files, kind.timeout, kind.quiet_timeout,
                  kind.refork, kind.memory, kind.options]
  end

  def test_settings_hold_for_all_of_them
    text = "workers 0; refork :manual; memory worker: 300.mb; timeout 30\nnode :sidekiq\nnode :karafka, timeout: 5"
    sidekiq, karafka = kinds(text)

    assert_equal([[:manual, 300 * (1024**2), 30.0, false], [:manual, 300 * (1024**2), 5.0, true]],
                 [sidekiq, karafka].map { |kind| [kind.refork, kind.memory, kind.timeout, kind.exclusive] })
  end

  def test_each_may_have_a_rollout_of_its_own
    text = "rollout canary: { requests: 7, seconds: 1 }, surge: 2\n" \
           "node :sidekiq\nnode :resque, canary: false, surge: 0, unavailable: 1"

    assert_equal([[{ requests: 7, seconds: 1.0, longest: 30.0 }, 2, 0], [false, 0, 1]],
                 kinds(text).map { |kind| [kind.canary, kind.surge, kind.unavailable] })
  end

  # That of requests is no measure for jobs.
  def test_but_not_the_timeout_of_requests
    assert_equal [600.0], kinds("workers 2; timeout 30\nnode :sidekiq").map(&:timeout)
  end

  def test_a_file_of_the_load_path_is_left_as_it_is
    assert_equal ["my/jobs"], kinds('node :sidekiq, require: "my/jobs"').first.files
  end

  def self.says(message, text)
    define_method("test_#{text.inspect}") { assert_equal "config/pando.rb:1: #{message}", error_of(text) }
  end

  says "node needs one name such as :sidekiq", "node"
  says "node :sidekick is not a runner that comes with Pando (:sidekiq, :karafka, :solid_queue, :good_job, :bunny, " \
       ":resque), and has no block that makes one. Did you mean sidekiq?", "node :sidekick"
  says 'node "sidekiq" needs a name such as :sidekiq', 'node "sidekiq"'
  says "node :sidekiq count: must be a whole number from 1 to 1024, but is 0.", "node :sidekiq, count: 0"
  says "node :resque surge: cannot be 0 while unavailable: is 0", "node :resque, surge: 0"
  says "node :sidekiq timeout: must be a number of seconds, more than 0 and at most a year, or false, but is nil.",
       "node :sidekiq, timeout: nil"
  says "there is a node \"sidekiq\" already (config/pando.rb:1): give one of them another name, such as name: " \
       "\"sidekiq_2\"", "node :sidekiq; node :sidekiq"
  says "there is a pool \"own\" already (config/pando.rb:1): give one of them another name, such as name: \"own_2\"",
       "pool :own, paths: '/own'; node(:own) { 1 }"
  says "node :own has a name that Pando uses itself: give it another one", "node(:own, name: :monitor) { 1 }"
  says "node :own has the name web, which the workers that serve requests have: give it another one, such as " \
       "name: \"jobs\"", "workers 1; node(:own, name: :web) { 1 }"
  says "node :sidekiq has a block, but its runner comes with Pando: leave the block out, or rename your own " \
       "runner", "node(:sidekiq) { 1 }"
  says "node :sidekiq queues: must be a list of queues, but is [].", "node :sidekiq, queues: []"

  says "node :sidekiq needs a higher limit: memory hard: must be more than worker:, 1.gb, but is 512.mb",
       "memory hard: 512.mb; node :sidekiq, memory: 1.gb"

  # What is the runner's own.
  says "node :sidekiq has no keyword cout:. Did you mean count?", "node :sidekiq, cout: 4"
  says "node :sidekiq has no keyword wieghts:. Did you mean weights?", "node :sidekiq, wieghts: {}"
  says "node :sidekiq weights: low is not one of its queues (mail)",
       "node :sidekiq, queues: %w[mail], weights: { mail: 2, low: 1 }"
  says "node :sidekiq weights: must be queues and their weights such as { critical: 3, default: 1 }, but is 3.",
       "node :sidekiq, weights: 3"
  says "node :sidekiq reliable: must be true or false, but is \"yes\".", "node :sidekiq, reliable: 'yes'"
  says "node :karafka has no keyword topics:.", "node :karafka, topics: 1"
  says "node :solid_queue killed_jobs: must be again or fail, but is :never.", "node :solid_queue, killed_jobs: :never"
  says "node :solid_queue has both queues: and queue_file: true, which takes it from config/queue.yml: leave one out",
       "node :solid_queue, queue_file: true, queues: %w[a]"
  says "node :solid_queue has both polling_interval: and queue_file: true, which takes it from config/queue.yml: " \
       "leave one out", "node :solid_queue, queue_file: true, polling_interval: 1"
  says "node :bunny needs consumer: \"YourClass\"", "node :bunny"
  says "node :bunny on_error: must be reject or requeue, but is :ignore.",
       "node :bunny, consumer: 'X', on_error: :ignore"

  def test_a_library_that_reads_its_options_by_itself_and_a_runner_of_yours_are_given_all
    all = kinds("node :good_job, poll_interval: 3\nnode(:own, cout: 3) { 1 }").map(&:options)

    assert_equal [{ poll_interval: 3 }, { cout: 3 }], all
  end

  # What the monitor hears of a file that another process has run.
  def test_a_line_comes_through_a_transcript
    line = Pando::Config::NodeLine.read(:mine, { count: 3, refork: [5, false], timeout: 2 }, -> {}, "config/pando.rb:7")
    heard = line.to_h.to_h { |key, value| [key.name, value.to_s] }
    again = Pando::Config::NodeLine.from(heard)

    assert_equal ["mine", line.to_h.except(:runner, :said_name)], [again.name, again.to_h.except(:runner, :said_name)]
  end
end
