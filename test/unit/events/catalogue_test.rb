# frozen_string_literal: true

require "test_helper"
require "pando/events/catalogue"

class EventsCatalogueTest < Minitest::Test
  Catalogue = Pando::Events::Catalogue

  def test_names_are_noun_dot_verb_so_that_a_symbol_can_name_them
    Catalogue.names.each { |name| assert_match(/\A[a-z]+\.[a-z]+(_[a-z]+)?\z/, name) }
  end

  def test_levels_are_the_three
    assert_empty Catalogue.all.map(&:level).uniq - %i[info warn error]
    assert_equal :error, Catalogue.level("worker.killed")
    assert_equal :info, Catalogue.level("nobody.knows")
  end

  def test_what_another_event_has_told_before_is_no_second_alarm
    level = ->(**payload) { Catalogue.level_of(Pando::Event.new("refork.refused", payload)) }

    assert_equal %i[warn info], [level.call(reason: "a"), level.call(reason: "a", told: true)]
  end

  def test_the_docs_show_exactly_this_table_and_explain_each_event
    rows = File.readlines(Support::Checkout.path("docs/events.md"), chomp: true).grep(/\A\| `/)
    explained = rows.map { |row| row.match(/\A(?<known>.* \|) (?<help>[^|]*) \|\z/) }

    assert_equal(Catalogue.all.map { |known| row(known) }, explained.map { |row| row[:known] })
    explained.each { |row| assert_match(/\A[A-Z`].*\.\z/, row[:help]) }
  end

  def test_every_event_that_the_code_emits_is_in_the_table
    sources = Dir[Support::Checkout.path("lib/**/*.rb")].to_h { |path| [path, File.read(path)] }
    emitted = sources.flat_map { |path, code| code.scan(/\bemit[ (]\s*"([^"#]+)"/).map { |(name)| [name, path] } }

    refute_empty emitted
    assert_empty(emitted.reject { |name, _| Catalogue.known?(name) })
  end

  def test_check_accepts_strings_and_symbols
    assert_equal "worker.ready", Catalogue.check("worker.ready")
    assert_equal "request.timed_out", Catalogue.check(:request_timed_out)
  end

  def test_check_refuses_an_unknown_name_with_the_nearest_right_one
    error = assert_raises(Pando::ConfigError) { Catalogue.check("worker.raedy") }

    assert_includes error.message, '"worker.raedy"'
    assert_includes error.message, 'did you mean "worker.ready"?'
    refute_includes assert_raises(Pando::ConfigError) { Catalogue.check("qqqqqqqq") }.message, "did you mean"
  end

  private

  def row(known)
    "| `#{known.name}` | #{known.level} | #{known.keys.join(", ")} |"
  end
end
