# frozen_string_literal: true

require "test_helper"
require "pando/cluster/monitor"

# The environment of a cold boot, and what is left of it for the application.
class ImageTest < Minitest::Test
  ColdBootCommand = Pando::Cluster::ColdBootCommand
  OWN = { "PATH" => "/bin", "LD_PRELOAD" => "/lib/theirs.so" }.freeze
  OURS = { "LD_PRELOAD" => "/lib/ours.so", "MALLOC_CONF" => "thp:never" }.freeze

  def test_what_its_start_needs_is_beside_what_there_was
    environment = ColdBootCommand.new(["ruby"], OURS).environment(OWN)

    assert_equal ["/bin", "/lib/ours.so", "thp:never"], environment.values_at("PATH", "LD_PRELOAD", "MALLOC_CONF")
  end

  def test_the_application_has_what_there_was
    environment = ColdBootCommand.new(["ruby"], OURS).environment(OWN)
    ColdBootCommand.settle(environment)

    assert_equal OWN, environment
  end

  def test_nothing_is_changed_without_need
    assert_same OWN, ColdBootCommand.new(["ruby"]).environment(OWN)
    environment = OWN.dup
    ColdBootCommand.settle(environment)

    assert_equal OWN, environment
  end
end
