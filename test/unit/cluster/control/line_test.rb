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
