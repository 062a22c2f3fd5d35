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

  def test_text_is_a_config_file_that_sets_the_same
    before = load_config(FILE)
    after = load_config(report.text)

    Pando::Config::Settings.all.each do |setting|
      assert_equal [before.public_send(setting.name)], [after.public_send(setting.name)], setting.name
    end
    assert_equal before.listen.map(&:options), after.listen.map(&:options)
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

  def report(text = FILE, **rest)
    Pando::Config::Report.new(load_config(text, **rest))
  end
end
