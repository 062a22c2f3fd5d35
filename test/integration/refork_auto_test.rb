# frozen_string_literal: true

require "test_helper"
require "support/servers"

# Promise: `refork :auto` reforks while that saves memory, and then stops, and says why. On the constant-caches app,
# a small one: what each of its requests warms is shared by all after a refork.
class ReforkAutoTest < Minitest::Test
  include Support::Servers

  APP = Support::Checkout.path("bench/apps/constants.ru")
  # Of all workers together, before it must have come so far.
  REQUESTS_AT_MOST = 3000

  def test_reforks_while_it_saves_memory_and_then_no_more
    @server = serve(config: "refork :auto, floor: 0; control 'control.sock'", arguments: [APP, "-w", "2"],
                    env: { "BENCH_METHODS" => "4000" })
    ask_until { decisions("settle").any? }
    first, second = decisions("refork")
    settled = decisions("settle").first

    assert_equal ["warming", "50 requests"], first.values_at("phase", "rule")
    assert_operator first["age"], :>=, 50
    assert_match(/\Atwice the \d+ requests of the one before\z/, second["rule"])
    assert_operator second["age"], :>=, first["age"] * 2
    assert_operator second["pss"], :<, first["pss"] * 0.95
    assert_match(/\Again -?\d\.\d+ < 0\.05\z/, settled["rule"])
    assert_operator settled["age"], :>=, second["age"]
    assert_stopped
  end

  private

  def decisions(what) = @server.events("refork.decided").select { |event| event["decision"] == what }

  def ask_until
    REQUESTS_AT_MOST.times do
      return if yield

      assert_equal 200, @server.get("/").status
    end
    flunk "it has not come so far:\n#{@server.events("refork.decided")}"
  end

  # Where doubling would have gone on, nothing happens; `pando status` says what is waited for.
  def assert_stopped
    reforks = @server.events("refork.started").size
    60.times { @server.get("/") }
    control = File.join(@server.folder, "control.sock")
    status = IO.popen(Support::Checkout.pando("status", "--control", control), &:read)

    assert_match(/^refork :auto is (paying|resting); decided last: (settle|rest): .+; now: .+$/, status)
    assert_equal reforks, @server.events("refork.started").size
  end
end
