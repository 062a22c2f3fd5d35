# frozen_string_literal: true

require "test_helper"
require "json"
require "open3"
require "tmpdir"

# The benchmark as it is run by hand, short: that it runs, and measures each way.
class PidBenchTest < Minitest::Test
  WAYS = ["$$", "Process.pid", "Process.pid, pid_cache", "Pando.pid", "$$ != pid", "ForkCheck"].freeze

  def test_each_way_is_measured
    output, results = bench("--rubies", "this", "--seconds", "0.02", "--rounds", "3")

    assert_equal([RUBY_VERSION], results.map { |result| result["ruby"][/\d+\.\d+\.\d+/] })
    assert_equal(WAYS, results.first["ways"].keys)
    results.flat_map { |result| result["ways"].values }.each do |rounds|
      assert_equal 3, rounds.size
      assert_operator rounds.sort[1], :>, 0
    end
    WAYS.each { |way| assert_match(/^#{Regexp.escape(way)} +\d/, output) }
  end

  # Before Ruby 3.3 each of them was a system call.
  def test_pando_asks_no_kernel
    skip "Ruby #{RUBY_VERSION} has cached the pid itself" if RUBY_VERSION >= "3.3"
    _, results = bench("--rubies", "this", "--seconds", "0.1", "--rounds", "3")
    fastest = results.first["ways"].transform_values(&:min)

    assert_operator fastest["Pando.pid"] * 2, :<, fastest["Process.pid"]
    assert_operator fastest["ForkCheck"] * 2, :<, fastest["$$ != pid"]
  end

  private

  def bench(*arguments)
    Dir.mktmpdir do |folder|
      figures = File.join(folder, "figures.json")
      output, status = Support::Checkout.without_bundle do
        Open3.capture2e(RbConfig.ruby, Support::Checkout.path("bench/pid"), *arguments, "--json", figures)
      end
      assert_predicate status, :success?, output
      [output, JSON.parse(File.read(figures))]
    end
  end
end
