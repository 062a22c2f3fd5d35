# frozen_string_literal: true

require "test_helper"
require "pando/events"
require "pando/telemetry/text_format"

class TelemetryTextFormatTest < Minitest::Test
  NOON = Time.new(2030, 1, 2, 12, 0, 0.25r, "+02:00")
  TIME = "2030-01-02T12:00:00.250+02:00"

  def text(name, **payload)
    Pando::Telemetry::TextFormat.new.format(Pando::Event.new(name, payload, time: NOON))
  end

  def error(message, frames: 3, error_class: IOError)
    error_class.new(message).tap { |one| one.set_backtrace((1..frames).map { |line| "app.rb:#{line}:in `call'" }) }
  end

  def test_a_line_is_the_time_the_name_and_the_payload
    line = text("worker.ready", slot: 3, ok: true, reason: nil)

    assert_equal "#{TIME} pando worker.ready slot=3 ok=true\n", line
  end

  def test_grave_events_are_marked
    assert_equal "#{TIME} pando ERROR worker.killed slot=3\n", text("worker.killed", slot: 3)
    assert_equal "#{TIME} pando WARN worker.unsafe pid=3\n", text("worker.unsafe", pid: 3)
  end

  def test_values_are_quoted_where_they_would_be_misread
    assert_equal "#{TIME} pando x.y a=/path b=\"two words\" c=\"\" d=\"k=v\" e=\"say \\\"hi\\\"\" f=é,2 g=1.235\n",
                 text("x.y", a: "/path", b: "two words", c: "", d: "k=v", e: 'say "hi"', f: ["é", 2], g: 1.23456)
  end

  def test_nothing_from_outside_can_forge_a_line_or_steer_a_terminal
    line = text("request.failed", path: "/\n12:00 pando x\r\e[2J\u0085\u2028\u202e\x7f\\n".b, method: "\xFF\xFE")

    assert_equal 1, line.lines.size
    assert_includes line, 'path="/\n12:00 pando x\r\e[2J\x85\u{2028}\u{202E}\x7F\\\\n"'
    assert_includes line, 'method=\xFF\xFE'
    assert_predicate line, :valid_encoding?
  end

  def test_any_encoding_is_shown_in_utf8
    line = text("x.y", a: "grüße".encode("UTF-16LE"), b: "\xE9".dup.force_encoding("ISO-8859-1"))

    assert_includes line, "a=grüße b=é"
  end

  def test_a_line_is_bounded_so_that_a_write_stays_atomic
    many = (1..100).to_h { |number| [:"key#{number}", "ü" * 5000] }

    assert_equal "#{TIME} pando x.y a=#{"ü" * 1024}…\n", text("x.y", a: "ü" * 5000)
    [many, many.first(8).to_h].each do |payload|
      line = text("x.y", **payload)

      assert_operator line.bytesize, :<=, 4096
      assert_equal 1, line.lines.size
      assert_predicate line, :valid_encoding?
    end
  end

  def test_an_error_is_followed_by_its_backtrace
    assert_equal <<~LOG, text("request.failed", slot: 1, error: error("no\ndatabase", frames: 2))
      #{TIME} pando ERROR request.failed slot=1 error="IOError: no\\ndatabase"
          app.rb:1:in `call'
          app.rb:2:in `call'
    LOG
  end

  def test_a_backtrace_in_the_payload_follows_whether_it_is_text_or_a_list
    ["boom\e\napp.rb:1:in `call'\n", ["boom\e", "app.rb:1:in `call'"]].each do |backtrace|
      assert_equal <<~LOG, text("worker.failed", backtrace: backtrace, pid: 1)
        #{TIME} pando ERROR worker.failed pid=1
            boom\\e
            app.rb:1:in `call'
      LOG
    end
    assert_equal 1, text("worker.failed", backtrace: nil).lines.size
  end

  def test_a_long_backtrace_is_cut
    lines = text("request.failed", error: error("deep", frames: 10_000)).lines

    assert_equal 102, lines.size
    assert_equal "    (9900 more)\n", lines.last
  end

  def test_the_cause_of_an_error_is_shown
    wrapped = begin
      begin
        raise IOError, "no database"
      rescue IOError
        raise ArgumentError, "hook failed"
      end
    rescue ArgumentError => outer
      outer
    end

    assert_includes text("hook.failed", error: wrapped), "    caused by IOError: no database\n      #{__FILE__}:"
  end

  def test_a_backtrace_that_an_application_has_made_is_shown_whatever_it_is
    { 5 => ["5"], "app.rb:1\napp.rb:2" => ["app.rb:1", "app.rb:2"], [:odd, nil] => ["odd", ""] }.each do |trace, shown|
      error = IOError.new("odd")
      error.define_singleton_method(:backtrace) { trace }
      frames = text("request.failed", error: error).lines.drop(1)

      assert_equal(shown.map { |frame| "    #{frame}\n" }, frames)
    end
  end

  def test_an_error_without_backtrace_is_one_line
    assert_equal 1, text("request.failed", error: IOError.new("never raised")).lines.size
  end
end
