# frozen_string_literal: true

require "test_helper"
require "pando/config"

class TypesTest < Minitest::Test
  Types = Pando::Config::Types

  def test_whole_numbers
    type = Types::Whole.new(1..10)

    assert_reads type, { 1 => 1, "10" => 10, "07" => 7, "1_0" => 10 }
    assert_refuses type, 0, 11, "_1", "1_", "1__0", "+1", "1e0", "11", "1.0", 1.0, "", " 1", nil, "1\n2", "9" * 30
    assert_equal "a whole number, 3 or more", Types::Whole.new(3..).expects
  end

  def test_workers
    type = Types::WholeOrAuto.new(1..10)

    assert_reads type, { 3 => 3, "3" => 3, :auto => :auto, "auto" => :auto }
    assert_refuses type, 0, "Auto", nil
  end

  def test_canary
    type = Types::Canary.new
    read = { requests: 5, seconds: 1.0, longest: 30.0 }

    assert_reads type, { :auto => :auto, "off" => false, false => false, "5,1,30" => read,
                         { requests: 5, seconds: 1 } => read,
                         { seconds: 60 } => { requests: 20, seconds: 60.0, longest: 120.0 } }
    assert_refuses type, nil, 5, { requests: -1 }, { request: 5 }, { seconds: 2, longest: 1 }
    assert_refuses type, { requests: 0 }, { longest: 0 }
    assert_refuses type, "", "5", "5,1", "0,1,30", expects: "auto, off or REQUESTS,SECONDS,LONGEST"
    assert_equal ["{ requests: 5, seconds: 1, longest: 30 }", ":auto"], [type.write(read), type.write(:auto)]
    assert_equal :auto, type.export(:auto)
  end

  def test_prefault
    type = Types::Prefault.new
    read = { bytes: 32 * (1024**2), milliseconds: 20 }

    assert_reads type, { true => true, "on" => true, false => false, "off" => false, "32mb,20" => read, read => read,
                         { milliseconds: 5 } => { bytes: 128 * (1024**2), milliseconds: 5 } }
    assert_refuses type, nil, 5, { bytes: 1 }, { milliseconds: 0 }, { byte: 8192 }
    assert_refuses type, "", "5", "yes", "5,x", expects: "on, off or BYTES,MILLISECONDS"
    assert_equal ["{ bytes: 32.mb, milliseconds: 20 }", "false"], [type.write(read), type.write(false)]
    assert_equal read, type.cast(type.text(read))
  end

  def test_networks
    type = Types::Networks.new

    assert_reads type, { "10.0.0.0/8" => %w[10.0.0.0/8], "loopback, ::1" => %w[loopback ::1], :unix => %w[unix],
                         ["10.0.0.1", :private, "private"] => %w[10.0.0.1 private],
                         false => [], "none" => [], "off" => [] }
    assert_refuses type, nil, "", [], "10.0.0.0/33", "10.0.0", "localhost", [nil], [1], "10.0.0.1 10.0.0.2",
                   "unix,,loopback", true
    assert_equal ["false", '["unix"]'], [type.write([]), type.write(%w[unix])]
    assert_equal [false, ["unix"]], [type.export([]), type.export(%w[unix])]
  end

  def test_seconds
    type = Types::Seconds.new

    assert_reads type, { 2 => 2.0, 1.5 => 1.5, "3" => 3.0, "0.25" => 0.25, "500ms" => 0.5, "2m" => 120.0,
                         "1h" => 3600.0, "30 s" => 30.0, Rational(1, 4) => 0.25 }
    assert_refuses type, 0, -1, "0", "-1", "", "s", "1d", "1e3", nil, Float::INFINITY, Float::NAN, "99999h"
    assert_reads Types::Seconds.new(least: 0), { 0 => 0.0 }
    assert_reads Types::Seconds.new(least: 0.1), { "0.1" => 0.1, "100ms" => 0.1 }
    assert_refuses Types::Seconds.new(least: 0.1), 0, 0.05
    assert_equal %w[20 1.5], [type.write(20.0), type.write(1.5)]
  end

  def test_the_limits_of_seconds_are_named
    assert_equal "a number of seconds, more than 0 and at most a year", Types::Seconds.new.expects
    assert_equal "a number of seconds from 0.1 to a year", Types::Seconds.new(least: 0.1).expects
    assert_refuses Types::Seconds.new(least: 0), 100_000_000, expects: "a number of seconds from 0 to a year"
  end

  def test_bytes
    type = Types::Bytes.new(0..)

    assert_reads type, { 0 => 0, "1024" => 1024, "64KB" => 65_536, "64k" => 65_536, "1.5 MiB" => 1_572_864,
                         "2gb" => 2 << 30, "7b" => 7 }
    assert_refuses type, -1, 1.5, "1.5.5", "1TB", "", "KB", nil
    assert_equal(%w[0 1000 64.kb 3.mb 1.gb], [0, 1000, 65_536, 3 << 20, 1 << 30].map { |bytes| type.write(bytes) })
    assert_equal "a number of bytes, from 1.kb to 1.mb", Types::Bytes.new(1024..1_048_576).expects
  end

  def test_shares_of_the_memory
    type = Types::ShareOfMemory.new(1024..)

    assert_reads type, { 2048 => 2048, "1 KB" => 1024, "80%" => "80%", "12.5 %" => "12.5%" }
    assert_refuses type, "101%", "0%", "%", "-5%", 12, nil
    assert_equal(%w[2.kb 80.percent], [type.write(2048), type.write("80%")])
    assert_equal([2048, 800, 125], [2048, "80%", "12.5%"].map { |value| Types::ShareOfMemory.of(value, 1000) })
    assert_equal([2048, Pando::Sys::Memory.limit / 2], [2048, "50%"].map { |value| type.resolved(value, "/") })
  end

  def test_choices_become_symbols_by_lookup_only
    type = Types::Choice.new(:text, :json)

    assert_reads type, { "json" => :json, :text => :text }
    assert_refuses type, "xml", nil, 1
    refute_includes Symbol.all_symbols.map(&:name), unknown = "no_symbol_#{rand(10**9)}"
    assert_refuses type, unknown
    refute_includes Symbol.all_symbols.map(&:name), unknown
  end

  def test_off
    type = Types::OrOff.new(Types::Whole.new(1..5))

    assert_equal([nil, nil, nil, 3], [false, "off", "false", "3"].map { |value| type.cast(value) })
    assert_refuses type, nil, 0, "none"
    assert_equal %w[false 3], [type.write(nil), type.write(3)]
    assert_equal [false, 3], [type.export(nil), type.export(3)]
  end

  def test_refork
    type = Types::Refork.new

    assert_reads type, { :auto => :auto, "auto" => :auto, :manual => :manual, false => false, "off" => false,
                         "50" => { after: [50] }, "50,75,100" => { after: [50, 75, 100] },
                         "50,75,off" => { after: [50, 75, false] }, "50,false" => { after: [50, false] } }
    assert_refuses type, "50,,75", "off,50", ",", "50,auto", 50, [50], nil, true
    assert_equal({ after: [5] }, type.cast(nil, after: [5]))
    assert_match(/Leave the value out: after: is enough/, refusal_of(type, :auto, after: [5]))
    assert_match(/1 or more each.*but is \["0"\]/, refusal_of(type, "0"))
    assert_equal([":auto", "false", "after: [5, false]"],
                 [:auto, false, { after: [5, false] }].map { |value| type.write(value) })
  end

  def test_refork_after
    type = Types::Refork::After.new

    assert_reads type, { 5 => [5], [5, 6] => [5, 6], [5, false] => [5, false], %w[5 off] => [5, false] }
    assert_refuses type, [], [false], [0], [5, false, 6], [5, nil], nil, [1.5]
  end

  def test_text_and_truth
    text = Types::Text.new("a word", /\A\w+\z/)

    assert_reads text, { "word" => "word", symbol: "symbol" }
    assert_refuses text, "", "two words", nil, 1, "\xFF"
    assert_reads Types::Truth.new, { true => true, false => false, "true" => true, "off" => false }
    assert_refuses Types::Truth.new, nil, "yes", 1
  end

  def test_file_modes
    assert_reads Types::FileMode.new, { 0o660 => 0o660, "0660" => 0o660, "777" => 0o777 }
    assert_refuses Types::FileMode.new, -1, 0o1777, "888", nil
  end

  private

  def assert_reads(type, pairs)
    pairs.each { |written, value| assert_equal value, type.cast(written), "reading #{written.inspect}" }
  end

  def assert_refuses(type, *values, expects: type.expects)
    values.each do |value|
      assert_includes refusal_of(type, value), "must be #{expects}, but is #{value.inspect}."
    end
  end

  def refusal_of(type, value, **options)
    assert_raises(Pando::Config::Type::Invalid, "reading #{value.inspect}") { type.cast(value, **options) }.message
  end
end
