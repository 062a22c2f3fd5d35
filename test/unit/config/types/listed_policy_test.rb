# frozen_string_literal: true

require "test_helper"
require "pando/config"

class ListedPolicyTest < Minitest::Test
  Types = Pando::Config::Types
  POLICY = Types::ListedPolicy.new(:allow, :report, :refuse, :fail, default: :refuse,
                                                                    list: "a list of gems' names and paths")

  def test_a_word_for_all_threads
    assert_equal(%i[allow report], [POLICY.cast(:allow), POLICY.cast("report")])
    assert_match(/must be allow, report, refuse or fail.*Did you mean allow\?/, refusal("alow"))
  end

  def test_a_list_of_those_to_put_up_with
    assert_equal({ allow: %w[a_gem lib/b.rb:3], otherwise: :refuse }, POLICY.cast({ allow: %w[a_gem lib/b.rb:3] }))
    assert_equal({ allow: %w[a_gem], otherwise: :report }, POLICY.cast({ allow: :a_gem, otherwise: :report }))
  end

  def test_what_is_wrong_is_said
    assert_match(/There is no allows:\. Did you mean "?allow/, refusal({ allows: %w[a] }))
    assert_match(/allow: must be a list of gems' names and paths/, refusal({ otherwise: :report }))
    assert_match(/otherwise: must be allow, report/, refusal({ allow: %w[a], otherwise: :never }))
    assert_match(/must be allow, report, refuse or fail, or a Hash of allow: and otherwise:, but is 3/, refusal(3))
  end

  def test_what_it_writes_it_reads_again
    [:refuse, { allow: %w[a_gem lib/b.rb:3], otherwise: :report }].each do |value|
      assert_equal(value, POLICY.cast(POLICY.text(value)))
      assert_equal(value, POLICY.cast(eval(POLICY.write(value)))) # rubocop:disable Security/Eval
    end
    assert_equal({ allow: %w[a], otherwise: :report }, POLICY.export({ allow: %w[a], otherwise: :report }))
  end

  private

  def refusal(value) = assert_raises(Pando::Config::Type::Invalid) { POLICY.cast(value) }.message
end
