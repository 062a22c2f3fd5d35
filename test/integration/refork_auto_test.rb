# frozen_string_literal: true

require "test_helper"
require "support/servers"

# Promise: `refork :auto` reforks while that saves memory, and then stops, and says why. On the constant-caches app,
# what each of its requests warms is shared by all after a refork.
class ReforkAutoTest < Minitest::Test
  include Support::Servers

  APP = Support::Checkout.path("bench/apps/constants.ru")
  # Of all workers together, before it must have come so far: more than it takes until an ancestor is warm by its
  # requests alone, which is what ends the warming where CPU time is too uneven to compare generations by.
  REQUESTS_AT_MOST = 20_000
  # Requests a second, at least, and as a share of those so far: at twice a look in a second, not too many for two
  # generations to be compared at the same age.
  PACE = 60.0
  GROWTH = 0.2
  # The gain was small, would not pay, or the ancestor is warm (docs/reforking.md).
  SETTLED_BY = /\A(gain \d\.\d+ < \d\.\d+|\d\.\d+ \* \d+ < 3 \* \d+|age \d+ > 3200)\z/

  def test_reforks_while_it_saves_memory_and_then_no_more
    @asked = 0
    @server = serve(config: "refork :auto, floor: 0; control 'control.sock'", arguments: [APP, "-w", "2"],
                    env: { "BENCH_METHODS" => "40000" })
    ask_until { decisions("settle").any? }
    first, second = decisions("refork")
    settled = decisions("settle").first

    assert_equal ["warming", "50 requests"], first.values_at("phase", "rule")
    assert_operator requests(first), :>=, 50
    assert_equal "twice the #{requests(first)} requests of the one before", second["rule"]
    assert_operator requests(second), :>=, requests(first) * 2
    assert_match(SETTLED_BY, settled["rule"])
    assert_operator settled["pss"], :>, 0
    assert_stopped
  end

  private

  def decisions(what) = @server.events("refork.decided").select { |event| event["decision"] == what }

  def ask
    assert_equal 200, @server.get("/").status
    sleep 1 / [PACE, (@asked += 1) * GROWTH].max
  end

  def requests(decision) = decision["reason"][/\Aa worker served (\d+) requests(?:;|\z)/, 1].to_i

  def ask_until
    REQUESTS_AT_MOST.times do
      return if yield

      ask
    end
    flunk "it has not come so far:\n#{@server.events("refork.decided")}"
  end

  # Where doubling would have gone on, nothing happens; `pando status` says what is waited for.
  def assert_stopped
    reforks = @server.events("refork.started").size
    60.times { ask }
    control = File.join(@server.folder, "control.sock")
    status = IO.popen(Support::Checkout.pando("status", "--control", control), &:read)

    assert_match(/^refork :auto is (paying|resting); decided last: (settle|rest): .+$/, status)
    assert_equal reforks, @server.events("refork.started").size
  end
end
