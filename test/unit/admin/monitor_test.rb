# frozen_string_literal: true

require "test_helper"
require "pando/admin/monitor"
require "support/waiting"

# How the admin process asks the monitor.
class AdminMonitorTest < Minitest::Test
  include Support::Waiting

  # A monitor that hangs: nobody answers at the other end.
  def setup
    @theirs = []
    @monitor = Pando::Admin::Monitor.new { |socket| @theirs << socket.dup }
  end

  def teardown = @theirs.each(&:close)

  # All of them have waited for the same answer, which did not come: none waits for another one.
  def test_several_that_wait_for_a_monitor_that_hangs
    threads = Array.new(4) { Thread.new { @monitor.snapshot rescue $!.message } } # rubocop:disable Style
    wait_until { @theirs.any? && threads.all? { |thread| thread.status == "sleep" } }
    @theirs.first.close # it breaks off

    assert_equal(["the monitor does not answer: the server is gone"], threads.map(&:value).uniq)
    assert_equal(1, @theirs.size)
  end
end
