# frozen_string_literal: true

require "test_helper"
require "delegate"
require "pando/http/reactor_setup"
require "pando/server"
require "pando/server/renewal"

# Which settings a reload cannot change, and its end.
class ServerRenewalTest < Minitest::Test
  # A configuration that notes which of its settings are read.
  class NotedConfig < SimpleDelegator
    # @return [Array<Symbol>]
    def read = @read ||= []

    Pando::Config::Settings.groups.values.flatten.map(&:name).each do |name|
      define_method(name) do
        read << name
        super()
      end
    end
  end

  def test_all_settings_of_the_reactor_are_marked
    config = NotedConfig.new(Pando::Config.load([], env: {}))
    reactor = Pando::HTTP::ReactorSettings.new(config)
    Pando::HTTP::ReactorSettings.public_instance_methods(false).each { |name| reactor.public_send(name) }

    assert_includes(config.read, :max_header_bytes)
    assert_empty(config.read.uniq - Pando::Server::StartSettings::OF_REACTOR)
  end

  # The monitor lives on.
  def test_at_its_end_the_next_deployment_may_have_removed_the_folder
    renewal = Pando::Server::Renewal.allocate
    renewal.instance_variable_set(:@release, Pando::Server::ReleaseDirectory.new("/nonexistent"))
    told = []
    subscription = Pando::Events.subscribe("release.missing") { |event| told << event.payload }
    renewal.settle

    assert_equal(1, told.size)
    assert_includes(told.first[:reason], "/nonexistent")
  ensure
    Pando::Events.unsubscribe(subscription)
  end
end
