# frozen_string_literal: true

require "test_helper"
require "open3"
require "rbconfig"
require "support/checkout"

# bench/renewals as it is run by hand, small: reloads and upgrades under load lose no request.
class RenewalsBenchTest < Minitest::Test
  def test_no_request_is_lost
    output, status = run_bench("--reloads", "2", "--upgrades", "2")

    assert_predicate(status, :success?, output)
    assert_match(/^reloads +2 of 2$/, output)
    assert_match(/^upgrades +2 of 2$/, output)
    assert_match(/^requests +[1-9]\d*: .* post/, output)
    assert_match(/^requests failed +0$/, output)
  end

  def test_one_that_fails_is_told
    config = "rollout canary: false; max_body_bytes 5"
    output, status = run_bench("--reloads", "1", "--upgrades", "0", "--config", config)

    assert_equal(1, status.exitstatus, output)
    assert_match(/^requests failed +[1-9]\d* .*\b413\b/, output)
    assert_match(/^reloads +1 of 1$/, output)
  end

  private

  def run_bench(*arguments)
    Open3.capture2(RbConfig.ruby, Support::Checkout.path("bench/renewals"), "--workers", "2", *arguments,
                   err: File::NULL)
  end
end
