# frozen_string_literal: true

require "test_helper"
require "pando/config"
require "support/checkout"

# The time that docs/hosting.md and the manifest give a server between TERM and KILL is enough.
class HostingExamplesTest < Minitest::Test
  PAGE = File.read(Support::Checkout.path("docs/hosting.md"))
  MANIFEST = File.read(Support::Checkout.path("examples/kubernetes/pando.yaml"))
  # Seconds after `stop_timeout` by which the server has ended (docs/containers.md).
  REST = 2

  def stop_timeout = Pando::Config::Settings[:stop_timeout].default
  def drain_delay(text) = Integer(text[/^(?:#\s+)?drain_delay (\d+)/, 1])
  def needed(text = PAGE) = drain_delay(text) + stop_timeout + REST

  def test_what_the_hosts_of_the_page_are_told
    { "Docker" => /docker stop -t (\d+)/, "Compose" => /stop_grace_period: (\d+)s/,
      "Kamal" => /^stop_timeout: (\d+)/,
      "Render" => /^\| Shutdown delay [^|]*\| (\d+)/, "Fly.io" => /^kill_timeout = (\d+)/ }.each do |host, setting|
      assert_operator(Integer(PAGE[setting, 1]), :>=, needed, host)
    end
  end

  # It gives no more than 30 seconds.
  def test_what_heroku_gives
    row = PAGE[/^\| `drain_delay`, `stop_timeout` \|.*/]
    delay, timeout = row.split("|")[2].scan(/\d+/).map(&:to_i)

    assert_equal(stop_timeout, timeout)
    assert_operator(delay + timeout + REST, :<=, Integer(row[/has (\d+) seconds/, 1]))
  end

  def test_the_manifest
    assert_operator(Integer(MANIFEST[/terminationGracePeriodSeconds: (\d+)/, 1]), :>=, needed(MANIFEST))
  end
end
