# frozen_string_literal: true

require "test_helper"
require "open3"
require "rbconfig"
require "pando/config"

class SuggestionTest < Minitest::Test
  Suggestion = Pando::Suggestion

  def test_the_nearest_name
    assert_equal " Did you mean workers?", Suggestion.for("wrokers", %i[workers listen])
    assert_equal "", Suggestion.for("something", %w[workers listen])
  end

  def test_nothing_is_said_where_ruby_has_no_spell_checker
    script = 'require "pando/config"; print Pando::Suggestion.for("wrokers", %w[workers]).inspect'
    out, status = Open3.capture2(RbConfig.ruby, "--disable-did_you_mean", "-I", Support::Checkout.path("lib"),
                                 "-e", script)

    assert_equal ['""', true], [out, status.success?]
  end
end
