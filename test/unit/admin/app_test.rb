# frozen_string_literal: true

require "test_helper"
require "pando/admin/app"
require "pando/admin/history"

class AdminAppTest < Minitest::Test
  # A monitor that does not answer.
  module Silent
    def self.snapshot(*) = raise(Pando::Admin::Monitor::Unavailable, "the monitor does not answer")
  end

  # Lets everybody in.
  module Open
    def self.check(*, **) = nil
  end

  def test_a_silent_monitor_is_no_missing_page
    app = Pando::Admin::App.new(Silent, Open, nil, nil, nil)
    %w[/metrics /livez /readyz /status.json /slow /slow.log].each do |path|
      status, _, body = app.call("PATH_INFO" => path, "REQUEST_METHOD" => "GET")

      assert_equal([503, %({"error":"the monitor does not answer"}\n)], [status, body.join], path)
    end
  end

  # Only the slow requests need the monitor.
  def test_the_past_is_shown_while_the_monitor_is_silent
    history = Pando::Admin::History.new(Silent, nil)
    history.event("refork.finished", %({"event":"refork.finished"}), 7)
    app = Pando::Admin::App.new(Silent, Open, nil, nil, history)
    status, _, body = app.call("PATH_INFO" => "/history.json", "REQUEST_METHOD" => "GET")

    assert_equal([200, { "events" => [{ "event" => "refork.finished" }], "hour" => [], "day" => [], "known" => 7 }],
                 [status, JSON.parse(body.join)])
  end

  # Keeps the commands that it gets.
  class Obedient
    attr_reader :commands

    def initialize = @commands = []

    def command(word, pairs, _timeout)
      @commands << [word, pairs]
      ["ok", { "text" => "done" }]
    end
  end

  def post(monitor, path, query)
    app = Pando::Admin::App.new(monitor, Open, nil, nil, nil)
    status, _, body = app.call("PATH_INFO" => path, "REQUEST_METHOD" => "POST", "QUERY_STRING" => query)
    [status, body.join]
  end

  def test_parameters_that_are_on_or_off
    monitor = Obedient.new
    ["undo=1", "undo", "undo=0", "undo=0&wait=0", ""].each do |query|
      assert_equal(200, post(monitor, "/drain", query).first, query)
    end

    assert_equal([{ "undo" => "yes" }, { "undo" => "yes" }, {}, {}, {}], monitor.commands.map(&:last))
  end

  def test_wrong_parameters_are_refused
    monitor = Obedient.new
    { "/drain?undo=yes" => "undo must be 0 or 1", "/refork?wait=-1" => "wait must be 0 or 1",
      "/refork?force=" => "force must be 0 or 1", "/scale?workers=2&bogus=1" => "/scale takes no parameter 'bogus'",
      "/stack?slot=1&wait=0" => "/stack takes no parameter 'wait'", "/scale?pool=web" => "workers is missing",
      "/kill?pid=1" => "slot is missing", "/scale?workers=two" => "workers must be a whole number below a billion",
      "/kill?slot=-1" => "slot must be a whole number below a billion",
      "/scale?workers" => "workers must be a whole number below a billion",
      "/kill?slot" => "slot must be a whole number below a billion", "/refork?pool=" => "pool is empty",
      "/refork?pool" => "pool is empty", "/scale?workers=4&workers=5" => "workers is there several times",
      "/drain?undo=1&undo=%FF" => "undo is there several times" }.each do |target, reason|
      assert_equal([400, %({"error":"#{reason}"}\n)], post(monitor, *target.split("?")), target)
    end

    assert_empty(monitor.commands)
  end
end
