# frozen_string_literal: true

require "test_helper"
require "pando/compat/static_value"

class CompatStaticValueTest < Minitest::Test
  StaticValue = Pando::Compat::StaticValue
  ENVIRONMENT = { "PORT" => "80", "RAILS_ENV" => "production" }.freeze
  VARIABLES = { "port" => 'ENV.fetch("PORT", 3000)', "many" => "Integer(ENV.fetch('N') { 4 })", "one" => "other",
                "other" => "one" }.freeze

  def test_values
    { "3" => "3", ":auto" => "auto", "'a'" => "a", "nil" => nil, "ENV['PORT']" => "80", "ENV[\"NONE\"]" => nil,
      "ENV.fetch('PORT') { 3000 }" => "80", "ENV.fetch('NONE') { 3000 }" => "3000", "ENV['NONE'] || 5" => "5",
      "(ENV['PORT'] || 5).to_i" => "80", "port" => "80", "many" => "4",
      "\"tcp://0.0.0.0:\#{ENV.fetch('NONE', 1)}\"" => "tcp://0.0.0.0:1" }
      .each { |text, value| assert same?(value, values.of(text)), text }
  end

  def test_what_cannot_be_told
    ["Shop.port", "ENV.fetch('NONE')", "one", "\"a\#{Shop.port}\"", "File.read('x')"]
      .each { |text| assert_same StaticValue::UNKNOWN, values.of(text), text }
  end

  def test_conditions
    { "ENV['PORT']" => true, "ENV['NONE']" => false, "many > 1" => true, "ENV.fetch('NONE', 1).to_i > 1" => false,
      "(ENV.fetch('RAILS_ENV', 'development') == 'production')" => true, "ENV['RAILS_ENV'] != 'production'" => false,
      "!ENV['PORT']" => false, "%w[test production].include?(ENV['RAILS_ENV'])" => true, "Shop.big?" => nil,
      "ENV['SOLID_QUEUE_IN_PUMA']" => false }
      .each { |text, answer| assert same?(answer, values.truth(text)), text }
  end

  def test_where_a_value_comes_from
    assert values.from?("port", ["PORT"])
    refute values.from?("many", ["PORT"])
    refute values.from?("one", ["PORT"])
  end

  private

  # Nil, too.
  def same?(one, other) = one == other

  def values = StaticValue.new(ENVIRONMENT, VARIABLES)
end
