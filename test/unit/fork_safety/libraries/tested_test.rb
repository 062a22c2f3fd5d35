# frozen_string_literal: true

require "test_helper"
require "pando/fork_safety/libraries/known"

# Promise: a row that is marked as tested has a test of the real gem, and a row that has one is marked. The tests
# themselves say which: a test of the app library_rows names the rows of its group that it uses, `row "NAME"` there;
# any other has a list, LIBRARIES = %w[NAME ...].
class TestedLibrariesTest < Minitest::Test
  TESTS = Dir[Support::Checkout.path("test/integration/**/*_test.rb")].freeze
  ROWS = Support::Checkout.path("test/fixtures/apps/library_rows")
  Known = Pando::ForkSafety::Libraries::Known

  def test_the_rows_that_are_marked_are_those_that_a_test_names
    marked = Known.all.select(&:tested?).map(&:name)
    named = TESTS.flat_map { |path| names(File.read(path)) }.uniq

    assert_equal [], marked - named, "marked `tested: true`, and no test names them"
    assert_equal [], (named & Known.names) - marked, "a test names them, and they are not marked `tested: true`"
  end

  def test_every_list_is_of_libraries_in_the_table
    assert_equal [], TESTS.flat_map { |path| listed(File.read(path)) } - Known.names
  end

  private

  def names(text) = listed(text) + used(text)
  def listed(text) = text.scan(/\bLIBRARIES = %w\[(.*?)\]/m).flat_map { |list| list.first.split }

  # @return [Array<String>] rows of the group that the test names, as a String or in a list of words
  def used(text)
    group = text[/^  def group = "(\w+)"/, 1] or return []
    rows = File.read(File.join(ROWS, "#{group}.rb")).scan(/^row[ (]"([^"]+)"/).flatten
    rows.select { |row| text.match?(/"#{row}"|%w\[[^\]]*(?<![\w-])#{row}(?![\w-])/) }
  end
end
