# frozen_string_literal: true

require "test_helper"
require "pando/compat/translator"

# Translates texts of other servers' config files.
class TranslationTestCase < Minitest::Test
  private

  def translate(source, name: "config/puma.rb") = Pando::Compat::Translator.new(source, name).call.text
  def body(source) = translate(source).lines.drop(3).join

  # @param expected [String, nil] nil: it is left out
  def assert_translated(expected, line, name: "config/puma.rb")
    rows = translate("#{line}\n", name: name).lines.drop(3).map(&:chomp).reject { |row| row.start_with?("# pando: ") }

    assert_equal [expected.nil? ? "# #{line}" : "#{expected}#{" # was: #{line}" unless expected == line}"], rows, line
  end
end
