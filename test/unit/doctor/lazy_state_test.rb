# frozen_string_literal: true

require "test_helper"
require "pando/doctor/lazy_state"

# Findings and figures on their way between processes.
class LazyStateResultTest < Minitest::Test
  Finding = Pando::ForkSafety::Finding
  Result = Pando::Doctor::LazyState::Result

  def test_it_comes_back_as_it_was
    finding = Finding.new(:lazy_memory, severity: :warning, subject: "A.@b", location: "/app/a.rb:1", message: "Big.",
                                        details: { bytes: 5 })
    back = Result.parse(Result.new([finding], { requests: [{ request: 1 }] }).to_json)

    assert_equal [finding.to_h], back.findings.map(&:to_h)
    assert_equal({ requests: [{ request: 1 }] }, back.figures)
  end

  def test_what_is_no_kind_is_refused
    error = assert_raises(KeyError) do
      Result.parse('{"findings":[{"kind":"evil","severity":"note","subject":"a","message":"b"}],"figures":{}}')
    end

    assert_includes error.message, "key not found"
  end
end
