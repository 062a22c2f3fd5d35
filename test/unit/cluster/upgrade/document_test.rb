# frozen_string_literal: true

require "test_helper"
require "pando/cluster/monitor"

# What one image of the monitor writes, the next one reads as it was, or not at all.
class UpgradeDocumentTest < Minitest::Test
  Upgrade = Pando::Cluster::Upgrade
  Document = Upgrade::Document

  def test_values_come_back_as_they_were
    values = { count: 7, at: 12.5, ever: Float::INFINITY, on: true, off: false, kind: :worker, list: [3, 5], none: nil,
               text: "a b=c%\n\u00e9", bytes: "\xff\0".b }
    record = again(Document.new.add("thing", **values)).one("thing")

    assert_equal(7, record.integer(:count))
    assert_equal([12.5, Float::INFINITY], [record.number(:at), record.number(:ever)])
    assert_equal([true, false], [record.flag(:on), record.flag(:off)])
    assert_equal(:worker, record.choice(:kind, %i[mold worker]))
    assert_equal([3, 5], record.integers(:list))
    assert_equal("a b=c%\n\u00e9", record.text(:text))
    assert_equal("\xff\0".b, record.bytes(:bytes))
    refute(record.key?(:none))
  end

  def test_what_is_not_of_the_kind_is_refused
    record = Upgrade::Record.new("thing", "text" => "x", "negative" => "-1", "long" => "9" * 30, "empty" => "",
                                          "list" => "1,x", "near" => "tru", "hex" => "0x10")

    %w[text negative long empty near hex].each do |key|
      assert_raises(Upgrade::Unreadable, key) { record.integer(key) }
    end
    assert_raises(Upgrade::Unreadable) { record.integers("list") }
    %w[text empty near].product(%i[number flag]) do |key, kind|
      assert_raises(Upgrade::Unreadable, key) { record.read(key, kind) }
    end
    assert_raises(Upgrade::Unreadable) { record.choice("text", %i[mold worker]) }
    error = assert_raises(Upgrade::Unreadable) { record.text("missing") }
    assert_equal("a record thing has no missing", error.message)
  end

  # A newer Pando may have written more; an older one less.
  def test_what_is_unknown_is_passed_over_and_what_is_missing_is_nil
    document = Document.parse("pando 1\nfuture x=1\nthing y.z=2\nend records=2\n")

    assert_equal(2, document.one("thing").integer("y.z"))
    assert_nil(document.one("thing").read(:missing, :integer))
    assert_nil(document.any("nothing"))
    assert_raises(Upgrade::Unreadable) { document.one("nothing") }
  end

  # Each with what is said of it.
  BROKEN = {
    "" => /no document/, "pando\nend records=0\n" => /no document/, "pando 3\nend records=0\n" => /format 3, not 1/,
    "pando 1\n" => /no end/, "pando 1\nthing a=1\n" => /no end/, "pando 1\nthing a=1\nend records=0\n" => /no end/,
    "pando 1\nthing a=1\nend records=1" => /no end/, "pando 1\nThing a=1\nend records=1\n" => /no record/,
    "pando 1\nthing a\nend records=1\n" => /no record/, "pando 1\n\nend records=1\n" => /no record/,
    "pando 1\nthing a b=1\nend records=1\n" => /no record/, "pando 1\nthing .a=1\nend records=1\n" => /no record/
  }.freeze

  BROKEN.each do |text, said|
    define_method(:"test_it_refuses_#{text.inspect}") do
      assert_match(said, assert_raises(Upgrade::Unreadable) { Document.parse(text) }.message)
    end
  end

  def test_too_large_is_refused_unread
    error = assert_raises(Upgrade::Unreadable) { Document.parse("x" * (Document::LIMIT + 1)) }

    assert_match(/larger than/, error.message)
  end

  private

  def again(document) = Document.parse(document.to_s)
end
