# frozen_string_literal: true

require "test_helper"
require "pando/events"
require "pando/telemetry/json_format"

class TelemetryJSONFormatTest < Minitest::Test
  NOON = Time.utc(2030, 1, 2, 12, 0, 0.25r)

  def line(name, **payload)
    Pando::Telemetry::JSONFormat.new.format(Pando::Event.new(name, payload, time: NOON))
  end

  def parsed(...)
    JSON.parse(line(...))
  end

  def test_an_event_is_one_object_on_one_line
    assert_equal <<~JSON, line("worker.killed", slot: 3, path: "/a b", reason: nil)
      {"time":"2030-01-02T12:00:00.250Z","event":"worker.killed","level":"error","slot":3,"path":"/a b"}
    JSON
  end

  def test_a_payload_cannot_pose_as_the_events_own_keys
    event = parsed("worker.ready", time: "never", event: "worker.lost", level: "none", slot: 1)

    assert_equal ["2030-01-02T12:00:00.250Z", "worker.ready", "info"], event.values_at("time", "event", "level")
    assert_equal 1, event["slot"]
  end

  def test_values_keep_their_json_type_or_become_text
    event = parsed("x.y", integer: 1, float: 1.5, truth: true, list: [:a, nil], map: { k: 2..3 }, nan: Float::NAN)

    assert_equal({ "integer" => 1, "float" => 1.5, "truth" => true, "list" => ["a", nil], "map" => { "k" => "2..3" },
                   "nan" => "NaN" }, event.except("time", "event", "level"))
  end

  def test_hostile_text_stays_printable_ascii
    text = line("x.y", path: "/\n\e\x7f\u0085\u202eü\xFF".b)

    assert_match(/\A[ -~]+\n\z/, text)
    assert_equal "/\n\e\x7f\u0085\u202eü\\xFF", JSON.parse(text)["path"]
  end

  def test_an_error_is_an_object_with_its_cause
    wrapped = begin
      begin
        raise IOError, "no database"
      rescue IOError
        raise ArgumentError, "hook failed"
      end
    rescue ArgumentError => outer
      outer
    end
    error = parsed("hook.failed", error: wrapped).fetch("error")

    assert_equal ["ArgumentError", "hook failed"], error.values_at("class", "message")
    assert_includes error["backtrace"].first, "#{__FILE__}:"
    assert_equal ["IOError", "no database"], error["cause"].values_at("class", "message")
  end

  def test_a_backtrace_in_the_payload_is_a_list
    assert_equal %w[one two], parsed("mold.discarded", backtrace: "one\ntwo\n")["backtrace"]
    assert_equal %w[one two], parsed("mold.discarded", backtrace: %w[one two])["backtrace"]
    refute parsed("mold.discarded", backtrace: nil).key?("backtrace")
  end

  def test_an_error_of_an_application_is_shown_whatever_it_answers
    { 5 => ["5"], "app.rb:1\napp.rb:2" => ["app.rb:1", "app.rb:2"],
      [:odd, nil] => ["odd", ""], nil => [] }.each do |trace, shown|
      odd = IOError.new("odd")
      odd.define_singleton_method(:backtrace) { trace }
      odd.define_singleton_method(:message) { trace }
      error = parsed("request.failed", error: odd)["error"]

      assert_equal [trace.to_s, shown], error.values_at("message", "backtrace")
    end
  end

  def test_a_line_is_bounded
    many = (1..500).to_h { |number| [:"key#{number}", "ü" * 5000] }

    assert_equal "#{"x" * 1024}…", parsed("x.y", a: "x" * 5000)["a"]
    [many.first(20).to_h, many, { list: [["é" * 2000] * 1000] * 10 }].each do |payload|
      text = line("x.y", **payload)
      assert_operator text.bytesize, :<=, 32_768
      assert_equal "x.y", JSON.parse(text)["event"]
    end
  end

  def test_a_structure_that_contains_itself_ends
    list = []
    list << list

    assert_equal [[["…"]]], parsed("x.y", list: list)["list"]
  end
end
