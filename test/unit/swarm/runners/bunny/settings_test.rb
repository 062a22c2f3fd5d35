# frozen_string_literal: true

require "test_helper"
require "pando/config/node_line"
require "pando/swarm"
require "pando/swarm/runners/bunny"
require "pando/swarm/runners/bunny/settings"

# The rest is tested with RabbitMQ, see test/integration/swarm.
class BunnySettingsTest < Minitest::Test
  class Consumer
    def call(message) = message
  end

  def test_what_holds_where_nothing_is_said
    settings = settings(consumer: "BunnySettingsTest::Consumer")

    assert_equal [3, :reject, %w[mails]], [settings.prefetch, settings.on_error, settings.queues]
    assert_instance_of Consumer, settings.handler
    refute_same settings.handler, settings.handler
  end

  def test_an_object_is_taken_for_all_messages
    consumer = Consumer.new

    assert_same consumer, settings(consumer: consumer).handler
  end

  def test_a_consumer_that_is_not_there_is_told
    assert_raises(NameError) { settings(consumer: "BunnySettingsTest::Missing").consumer }
  end

  def test_where_it_connects_to
    ours = { automatically_recover: false }
    url, options = settings(consumer: "X", connection: "amqp://host").connection(ours)
    assert_equal ["amqp://host", false, 5], [url, options[:automatically_recover], options[:connection_timeout]]

    hash = { host: "host", connection_timeout: 9, automatically_recover: true }
    given, last_word = settings(consumer: "X", connection: hash).connection(ours)
    assert_equal ["host", 9], given.values_at(:host, :connection_timeout)
    assert_equal ours, last_word # Bunny merges it into the first
  end

  private

  def settings(options)
    kind = Pando::Config::NodeKind.new(name: "bunny", concurrency: 3, queues: %w[mails], options: options)
    Pando::Swarm::Runners::Bunny::Settings.new(Pando::Swarm::Node.new(kind, 0))
  end
end
