# frozen_string_literal: true

require "test_helper"
require "support/servers"

# Promise: `refork :auto` reforks while that saves more than it costs, and says why. On the constant-caches app,
# what each of its requests warms is shared by all after a refork.
class ReforkAutoTest < Minitest::Test
  include Support::Servers

  APP = Support::Checkout.path("bench/apps/constants.ru")
  # Of all workers together, before the third refork must have come.
  REQUESTS_AT_MOST = 20_000
  PRICE = /\A\d+\.\d MiB \* \d+ s >= \d+\.\d MiB s\z/

  # Ten seconds of production in one. The app is far from warm at the first refork, so the second one is worth it, too.
  def test_reforks_while_what_it_saves_is_worth_the_cpu_time
    @server = serve(config: "refork :auto; control 'control.sock'", arguments: [APP, "-w", "2"],
                    env: { "BENCH_METHODS" => "40000", "BENCH_SLICES" => "400", "PANDO_TIME_SCALE" => "10" })
    ask_until { @server.events("generation.current").size > 2 }
    first, second = decisions("refork")

    assert_match(/\Aa worker served \d+ requests\z/, first["reason"])
    assert_operator first["reason"][/\d+/].to_i, :>=, 50
    assert_match(Regexp.union(PRICE, /\A50 requests\z/), first["rule"]) # whichever comes first
    assert_match PRICE, second["rule"]
    assert_operator second["cost"], :>=, 0.05 # two workers, at the least
    assert_explained
  end

  # A minute of production in a second.
  def test_when_the_traffic_has_ended_what_it_has_copied_is_shared_again
    @server = serve(config: "refork :auto; control 'control.sock'", arguments: [APP, "-w", "2"],
                    env: { "BENCH_METHODS" => "40000", "PANDO_TIME_SCALE" => "60" })
    40.times { @server.get("/") } # too few for the first refork
    @server.wait_past("generation.current", generation: 1)

    assert_match(/\Athere have been hardly any requests for \d+ s, and it saves \d+\.\d MiB\z/,
                 decisions("refork").first["reason"])
    assert_equal 200, @server.get("/").status
  end

  def test_says_what_it_waits_for
    @server = serve(config: "refork :auto; control 'control.sock'", arguments: [APP, "-w", "2"],
                    env: { "BENCH_METHODS" => "100" })

    assert_equal 200, @server.get("/").status
    assert_match(/^refork :auto is warming; now: the first refork is due at 50 requests$/, status)
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

  def status
    IO.popen(Support::Checkout.pando("status", "--control", File.join(@server.folder, "control.sock")), &:read)
  end

  def assert_explained = assert_match(/^refork :auto is (warming|paying); last decision: refork: .+$/, status)
end
