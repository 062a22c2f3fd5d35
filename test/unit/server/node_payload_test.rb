# frozen_string_literal: true

require "test_helper"
require "tmpdir"
require "pando/server"
require "pando/server/node_payload"
require "pando/fork_safety/libraries/active_record_pools"
require "pando/swarm/job_handler"
require "support/in_child"

# What a mold of job nodes loads.
class NodePayloadTest < Minitest::Test
  include Support::InChild

  # It would do as long as the first kind's mold has booted from cold.
  def test_a_shared_kind_says_what_it_would_load_by_itself
    error = assert_raises(Pando::BootError) { payload("node :sidekiq, shared: true").send(:load_application) }

    assert_equal "pando.rb:1: node :sidekiq needs require: with shared: true as well, for when web has been reforked " \
                 "it boots by itself", error.message
    payload("node(:own, name: :sidekiq, shared: true) { :mine }").send(:load_application)
  end

  def test_a_new_node_is_given_no_pages_unless_the_configuration_says_so
    given = ->(line) { payload(line).then { |one| [one.options.prefault, one.send(:prefault_terms)] } }

    assert_equal [false, false], given["node :sidekiq"]
    assert_equal [false, false], given["node :sidekiq\nrefork prefault: false"]
    assert_equal [{ bytes: 128 * (1024**2), milliseconds: 1000 }] * 2, given["node :sidekiq\nrefork prefault: true"]
    assert_equal [{ bytes: 8192, milliseconds: 5 }] * 2,
                 given["node :sidekiq\nrefork :auto, prefault: { bytes: 8192, milliseconds: 5 }"]
  end

  # With as many, the jobs do not wait for one another.
  def test_jobs_that_share_too_few_connections_are_reported
    assert_equal [["primary", 4, 5]], few("node :sidekiq, concurrency: 5")
    assert_empty few("node :sidekiq, concurrency: 4")
    assert_empty few("node(:own, name: :sidekiq) { :mine }")
  end

  private

  # Stands for pools of four connections.
  module Pools
    def smaller_than(threads) = { "primary" => 4 }.select { |_, size| size < threads }
  end

  # Stands for a runner whose gem is not there.
  module Unloaded
    def load(_kind) = nil
  end
  private_constant :Pools, :Unloaded

  # @return [Array<Array>] database, connections and threads of each event
  def few(line)
    in_child do
      told = []
      Pando::ForkSafety::Libraries::ActiveRecordPools.singleton_class.prepend(Pools)
      Pando::Swarm::Runners.load(:sidekiq).singleton_class.prepend(Unloaded)
      Pando::Events.subscribe("connections.few") { |event| told << event.payload.values_at(:name, :connections, :threads) }
      payload(line).tap { |one| one.send(:load_application) }.send(:check_connections)
      told
    end
  end

  # @param line [String] beside workers
  def payload(line)
    Dir.mktmpdir do |folder|
      File.write(File.join(folder, "pando.rb"), "#{line}\nworkers 1")
      config = Pando::Config.load(%w[-c pando.rb], env: {}, dir: folder)
      Pando::Server.new(config).payload("sidekiq")
    end
  end
end
