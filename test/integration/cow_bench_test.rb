# frozen_string_literal: true

require "test_helper"
require "json"
require "open3"
require "tmpdir"

# The benchmark itself, as it is run by hand: what it says about Pando and Pitchfork, one after the other. A
# smaller app would compare what the monitors take, not the sharing.
class CowBenchTest < Minitest::Test
  # Bytes: what a server takes more because it has a reactor, in all its processes. Measured: 1.5 to 3 MiB, of which the
  # reactor itself has less than 1 (lean_monitor_test); two runs of the same server differ by more than that.
  MOST_FOR_A_REACTOR = 5 * 1024 * 1024

  def test_after_one_refork_pando_takes_no_more_memory_than_pitchfork
    direct, pitchfork, pando = measure("pando-direct", "pitchfork", "pando")

    # Without this the comparison would say nothing: the load really made shared memory private.
    [direct, pitchfork].each { |server| assert_operator pss(server, "warmed"), :>, 1.5 * pss(server, "boot") }
    assert_operator pss(direct, "reforked"), :<=, pss(pitchfork, "reforked"),
                    "Pando's tree PSS in bytes, without the reactor, which Pitchfork has not either; and Pitchfork's"
    assert_operator pss(pando, "reforked") - pss(direct, "reforked"), :<, MOST_FOR_A_REACTOR
  end

  private

  def measure(*servers)
    Dir.mktmpdir do |folder|
      figures = File.join(folder, "cow.json")
      output, status = Support::Checkout.without_bundle { run_bench(servers, figures, folder) }
      assert_predicate status, :success?, output
      results = JSON.parse(File.read(figures))
      assert_equal(servers, results.map { |result| result["server"] })
      assert_empty(results.flat_map { |result| result["notes"] })
      results
    end
  end

  def run_bench(servers, figures, folder)
    Open3.capture2e(RbConfig.ruby, Support::Checkout.path("bench/cow"), "--servers", servers.join(","),
                    "--json", figures, "--svg", File.join(folder, "cow.svg"))
  end

  def pss(server, phase) = server["phases"][phase]["pss"]
end
