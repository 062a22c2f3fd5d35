# frozen_string_literal: true

require "test_helper"
require "pando/cluster/monitor"
require_relative "support/bare_monitor"
require_relative "support/simulation"

# What the monitor's objects show of themselves, in the message of an error for instance.
class ClusterBriefTest < Minitest::Test
  include ClusterSupport::BareMonitor

  LONGEST = 3000 # characters

  def test_no_part_of_a_monitor_shows_the_others
    parts = parts_of(set_up_monitor)

    assert_operator parts.map(&:class).uniq.size, :>, 60
    assert_empty(parts.map { |part| [part.class, part.inspect.size] }.select { |_, size| size > LONGEST })
  end

  def test_nor_does_a_child
    cluster = ClusterSupport::Simulation.new(workers: 4).tap(&:boot)
    cluster.roster.each { |child| assert_match(/\A#<Pando::Cluster::Child (worker|mold)[\w -]+>\z/, child.inspect) }

    assert_operator cluster.generations.current.inspect.size, :<, LONGEST
    assert_match(/\A#<Pando::Cluster::Generations>\z/, cluster.generations.inspect)
  end

  private

  # @return [Array<Object>] of Pando, that it refers to
  def parts_of(monitor)
    found = {}.compare_by_identity
    open = [monitor]
    until open.empty?
      part = open.pop
      next if found.key?(part) || !part.class.name.to_s.match?(/\A(Array|Hash|Method|Pando::.*)\z/)

      found[part] = true
      open.concat(references(part))
    end
    found.keys.select { |part| part.class.name.start_with?("Pando::Cluster") }
  end

  def references(part)
    inner = part.instance_variables.map { |name| part.instance_variable_get(name) }
    inner.concat(part.to_a.flatten(1)) if [Array, Hash, Struct].any? { |kind| part.is_a?(kind) }
    inner << part.receiver if part.is_a?(Method)
    inner
  end
end
