# frozen_string_literal: true

require "test_helper"

# The tables of docs/http.md: each rule names its tests, each of them exists, and
# none of the conformance tests is forgotten.
class DocumentationConformanceTest < Minitest::Test
  FOLDERS = %w[test/unit/http test/conformance].freeze

  # @return [Array<Array<String>>] the cells of each row whose table has tests
  def rows
    @rows ||= tables.select { |table| table.first.last == "test" }.flat_map { |table| table.drop(2) }
  end

  def tables
    lines = File.readlines(Support::Checkout.path("docs/http.md"), chomp: true)
    lines.slice_when { |line, following| line.start_with?("|") != following.start_with?("|") }
         .select { |table| table.first.start_with?("|") }
         .map { |table| table.map { |line| line.delete_prefix("|").delete_suffix("|").split("|", -1).map(&:strip) } }
  end

  def named = rows.flat_map { |row| row.last.split(", ") }.uniq

  def test_every_rule_has_a_test_that_exists
    assert_operator rows.size, :>, 50
    rows.each { |row| assert_match(/\A\w+_test(, \w+_test)*\z/, row.last, row.first) }
    missing = named.reject { |name| FOLDERS.any? { |folder| File.file?(Support::Checkout.path("#{folder}/#{name}.rb")) } }

    assert_empty missing
  end

  def test_every_conformance_test_is_named
    page = File.read(Support::Checkout.path("docs/http.md"))
    files = Dir[Support::Checkout.path("test/conformance/*_test.rb")].map { |file| File.basename(file, ".rb") }

    assert_empty(files.reject { |name| page.match?(/\b#{name}\b/) } - %w[documentation_test])
  end
end
