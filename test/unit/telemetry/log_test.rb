# frozen_string_literal: true

require "test_helper"
require "open3"
require "stringio"
require "pando/telemetry/log"

class TelemetryLogTest < Minitest::Test
  def log_of(format, **level)
    out = StringIO.new
    handle = Pando::Telemetry::Log.attach(out, format: format, **level)
    yield
    out.string
  ensure
    Pando::Events.unsubscribe(handle)
  end

  def test_it_writes_each_event_as_text
    out = log_of(:text) { Pando::Events.emit("worker.ready", slot: 3, generation: 2, pid: 4711) }

    assert_match(/\A\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}[+-]\d\d:\d\d pando worker\.ready slot=3 /, out)
    assert_operator(out, :end_with?, " generation=2 pid=4711\n")
  end

  def test_it_writes_each_event_as_json
    out = log_of("json") { 2.times { |slot| Pando::Events.emit("worker.ready", slot: slot) } }

    assert_equal([0, 1], out.lines.map { |line| JSON.parse(line).fetch("slot") })
  end

  def test_levels
    events = %w[worker.ready server.ready setting.ignored worker.killed]
    shown = { info: events, notice: events.drop(1), warn: events.drop(2), error: events.drop(3) }.to_h do |level, names|
      out = log_of(:text, level: level) { events.each { |name| Pando::Events.emit(name, pid: 1) } }
      [names, out.scan(/(\w+\.\w+) pid=/).flatten]
    end

    shown.each { |names, found| assert_equal names, found }
  end

  def test_what_is_shown_at_a_terminal_is_in_the_catalogue
    assert_empty Pando::Telemetry::Log::NOTICES - Pando::Events::Catalogue.names
  end

  def test_lines_that_were_lost_are_told_whatever_the_level
    reader, writer = IO.pipe
    told = []
    handles = [Pando::Telemetry::Log.attach(writer, format: :json, level: :error),
               Pando::Events.subscribe("lines.lost") { |event| told << event[:count] }]
    200.times { Pando::Events.emit("worker.failed", reason: "x" * 1000) }
    text = +""
    (text << reader.read_nonblock(65_536)) && Pando::Events.proceed until text.include?("lines.lost")
    lost = JSON.parse(text.lines.last)

    assert_equal [["lines.lost", "error"], Process.pid], [lost.values_at("event", "level"), lost["pid"]]
    assert_equal 200, text.lines.size - 1 + lost["count"]
    assert_equal [lost["count"]], told
  ensure
    handles.each { |handle| Pando::Events.unsubscribe(handle) }
    [reader, writer].each(&:close)
  end

  # It has ended, and its own log could not say it.
  def test_lines_that_another_process_has_lost_are_told_of
    told = log_of(:text) { [Process.pid, 4711].each { |pid| Pando::Events.emit("lines.lost", count: 3, pid: pid) } }

    assert_equal ["3 pid=4711"], told.scan(/lines\.lost count=(.*)/).flatten
  end

  def test_another_format_is_refused
    error = assert_raises(ArgumentError) { Pando::Telemetry::Log.new($stderr, format: :xml) }

    assert_includes error.message, "text or json"
  end

  def test_the_text_log_does_not_load_json
    code = 'require "pando/telemetry/log"; Pando::Telemetry::Log.attach(format: :text); ' \
           'Pando::Events.emit("worker.ready", slot: 1); exit !$LOADED_FEATURES.grep(%r{/json}).any?'
    out, status = Open3.capture2e(RbConfig.ruby, "--disable-gems", "-I", Support::Checkout.path("lib"), "-e", code)

    assert_predicate status, :success?, out
    assert_includes out, "slot=1"
  end
end
