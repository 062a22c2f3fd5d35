# frozen_string_literal: true

require_relative "../config/config_test_case"
require "pando/compat/notices"

class CompatNoticesTest < ConfigTestCase
  LOCK = "GEM\n  specs:\n    rails (8.1.0)\n    solid_queue (1.2.0)\n      rails (>= 7.1)\n"
  IN_PUMA = { "SOLID_QUEUE_IN_PUMA" => "true" }.freeze

  def test_nothing_to_notice
    assert_empty ignored
    assert_empty ignored("RAILS_MAX_THREADS" => "1", "SOLID_QUEUE_IN_PUMA" => "false", "PIDFILE" => "a.pid")
  end

  def test_a_file_of_puma_that_is_not_read
    write("config/puma.rb", "port 3000\nplugin :tmp_restart\nplugin :solid_queue if ENV[\"SOLID_QUEUE_IN_PUMA\"]\n")

    assert_equal [["config/puma.rb", "Pando does not read it", "pando init writes config/pando.rb from it"]], ignored
    write("config/pando.rb", "workers 1")
    assert_empty ignored
  end

  def test_its_plugins_are_named
    write("config/puma.rb",
          "  plugin :tailwindcss if dev\nplugin(\"solid_queue\")\n# plugin :old\nplugin :tailwindcss\n")

    assert_equal "Pando does not read it, nor does it run its plugins tailwindcss, solid_queue", ignored.dig(0, 1)
  end

  def test_threads
    assert_equal [["RAILS_MAX_THREADS", "a worker serves one request at a time",
                   "WEB_CONCURRENCY or workers says how many requests are served at once"]],
                 ignored("RAILS_MAX_THREADS" => "5")
  end

  def test_solid_queue_becomes_a_node
    rails_app
    events = told(IN_PUMA)

    assert_equal([["setting.followed", "SOLID_QUEUE_IN_PUMA"]], events.map { |event| [event.name, event[:name]] })
    kind = Pando::Config.load([], env: IN_PUMA, dir: @dir).nodes.first
    assert_equal [:solid_queue, "SOLID_QUEUE_IN_PUMA", 1, true], [kind.runner, kind.source, kind.count, kind.shared]
    assert_equal [["#{@dir}/config/environment.rb"], { queue_file: true }], [kind.files, kind.options]
  end

  def test_solid_queue_of_a_config_file_is_the_only_one
    rails_app
    write("config/pando.rb", "node :solid_queue, queues: %w[a], require: \"./config/environment.rb\"")
    nodes = Pando::Config.load([], env: IN_PUMA, dir: @dir).nodes

    assert_equal [["a"]], nodes.map(&:queues)
    assert_empty told(IN_PUMA)
  end

  def test_solid_queue_that_is_not_there
    rails_app
    write("Gemfile.lock", "GEM\n  specs:\n    rails (8.1.0)\n      solid_queue_like (1)\n")

    assert_empty Pando::Config.load([], env: IN_PUMA, dir: @dir).nodes
    assert_equal [["SOLID_QUEUE_IN_PUMA", "no jobs run: the Gemfile.lock does not name solid_queue",
                   "run bundle install, or unset it"]], ignored(IN_PUMA)
  end

  def test_solid_queue_is_off
    rails_app
    ["", "false", "0", "FALSE"].each do |value|
      assert_empty Pando::Config.load([], env: { "SOLID_QUEUE_IN_PUMA" => value }, dir: @dir).nodes, value
    end
  end

  def test_a_server_without_workers_leaves_it_alone
    rails_app
    write("config/pando.rb", "workers 0\nnode(:own) { Object.new }")

    assert_equal ["own"], Pando::Config.load([], env: IN_PUMA, dir: @dir).nodes.map(&:name)
    assert_empty ignored(IN_PUMA.merge("RAILS_MAX_THREADS" => "5"))
  end

  def test_the_lock_file_of_another_gemfile
    rails_app
    File.rename(File.join(@dir, "Gemfile.lock"), File.join(@dir, "Other.lock"))
    env = IN_PUMA.merge("BUNDLE_GEMFILE" => File.join(@dir, "Other"))

    assert_equal 1, Pando::Config.load([], env: env, dir: @dir).nodes.size
  end

  private

  def rails_app
    write("config/environment.rb", "")
    write("Gemfile.lock", LOCK)
  end

  def notices(env) = Pando::Compat::Notices.new(Pando::Config.load([], env: env, dir: @dir), env)
  def ignored(env = {}) = notices(env).ignored

  def told(env)
    events = []
    subscription = Pando::Events.subscribe { |event| events << event }
    notices(env).tell
    events
  ensure
    Pando::Events.unsubscribe(subscription)
  end
end
