# frozen_string_literal: true

require "test_helper"
require "pando/cluster/control/line"
require "pando/events/catalogue"

# A line of the control socket.
class ControlLineTest < Minitest::Test
  Line = Pando::Cluster::Control::Line

  def test_what_is_said_is_heard
    pairs = { slot: 3, job: "GET /a b=c%20\n", name: "größe", none: nil, empty: "" }
    line = Line.encode(:worker, pairs)

    assert_equal(1, line.count("\n"))
    assert_equal(["worker", { "slot" => "3", "job" => "GET /a b=c%20\n", "name" => "größe", "empty" => "" }],
                 Line.decode(line))
  end

  def test_every_field_of_every_event_is_heard
    Pando::Events::Catalogue.all.each do |entry|
      pairs = entry.keys.to_h { |key| [key, "x"] }

      assert_equal(["event", pairs.transform_keys(&:to_s)], Line.decode(Line.encode("event", pairs)))
    end
  end

  # The name of a queue, a job's id or a branch may consist of digits.
  def test_the_texts_of_an_event_stay_texts
    event = Pando::Event.new("job.killed", { id: "42", node: "1.5", name: "true", queue: "007", pid: 7, seconds: 1.5 },
                             time: Time.at(3))
    _, pairs = Line.decode(Line.encode("event", event: event.name, time: 3.0, number: 9, **event.payload))

    assert_equal(event.payload, Line.event(pairs).payload)
    assert_equal(["job.killed", Time.at(3)], [Line.event(pairs).name, Line.event(pairs).time])
  end

  def test_what_looks_like_a_number_is_one_if_ruby_would_write_it_so
    numbers = { "a" => "0", "b" => "-12", "c" => "0.5", "d" => "1.0e-05" }
    texts = %w[007 -0 1. 00.5 0x1 12a 1e3].to_h { |text| [text, text] }

    assert_equal([0, -12, 0.5, 1e-5], Line.typed(numbers).values)
    assert_equal(texts, Line.typed(texts))
  end

  def test_a_line_is_bounded_and_cut_between_two_fields
    line = Line.encode("event", **(1..9).to_h { |number| [:"field_#{number.to_s.tr("0-9", "a-j")}", "x" * 5000] })

    assert_operator(line.bytesize, :<=, Line::LIMIT)
    assert(line.end_with?("\n"))
    _, pairs = Line.decode(line)
    assert_equal([Line::VALUE_LIMIT], pairs.values.map(&:bytesize).uniq)
  end

  def test_anything_else_is_refused
    ["", "\n", "Status\n", "status x\n", "status =x\n", "a b\0c=1\n", "\xFF\n", "st\0atus\n",
     "#{"a" * 33}\n"].each { |line| assert_nil(Line.decode(line), line.inspect) }
  end

  def test_noise_never_raises
    random = Random.new(5)
    5000.times { Line.decode(random.bytes(random.rand(80))) }
  end
end
