# frozen_string_literal: true

require_relative "../bench_helper"
require "tmpdir"
require "support/lab/journal"

# What the servers' processes write down, and what is read of it.
class LabMeterTest < Minitest::Test
  def test_a_journal_knows_each_process_its_requests_and_its_ancestors
    Dir.mktmpdir do |folder|
      meter = Bench::Lab::Meter.new(->(_env) { [200, {}, []] }, folder)
      3.times { |index| meter.call("HTTP_X_LAB" => (index + 1).to_s) }
      in_child { 2.times { |index| meter.call("HTTP_X_LAB" => (index + 4).to_s) } }
      meter.call("HTTP_X_LAB" => "6")

      requests = Bench::Lab::Journal.new(folder).requests
      seen = requests.map { |each| [each.sequence, each.number, each.process.ancestors] }
      assert_equal [[1, 1, 0], [2, 2, 0], [3, 3, 0], [4, 1, 3], [5, 2, 3], [6, 4, 0]], seen
      assert_equal([false, true], requests.map { |each| each.process.reforked? }.uniq)
      assert_equal 2, requests.map { |each| each.process.pid }.uniq.size
    end
  end

  def test_a_request_that_raises_and_one_of_nobody_are_written_down_too
    Dir.mktmpdir do |folder|
      meter = Bench::Lab::Meter.new(->(_env) { raise "no" }, folder)
      assert_raises(RuntimeError) { meter.call({}) }

      request, = Bench::Lab::Journal.new(folder).requests
      assert_equal [0, 1], [request.sequence, request.number]
      assert_operator request.cpu, :>=, 0
      assert_equal([1], request.process.warmth.map { |note| note[:number] })
    end
  end

  private

  def in_child
    pid = fork do
      yield
      exit!(0)
    end
    assert_predicate Process.wait2(pid).last, :success?
  end
end
