# frozen_string_literal: true

require_relative "library_app"

# librdkafka does not survive a fork, and a worker with an open client is not promoted. One that closes it before is.
class RdkafkaTest < Minitest::Test
  include LibraryApp

  LIBRARIES = %w[rdkafka].freeze

  class Closing < Minitest::Test
    include LibraryApp

    def test_workers_that_close_their_producers_are_promoted
      0.upto(LibraryApp::REFORKS) do |generation|
        assert_equal generation, @server.refork["generation"] if generation.positive?
        ask_every_worker(generation, "/send")
      end
      assert_empty troubles
      assert_predicate @server.stop, :success?
    end

    private

    def app = "rdkafka"
    def config = "before_fork { Kafka.close if defined?(Kafka) }"
  end

  def test_a_worker_with_an_open_producer_is_not_promoted
    ask_every_worker(0, "/send")
    unsafe = @server.wait_for("worker.unsafe") { @server.signal("USR2") }
    discarded = @server.wait_past("generation.discarded")

    assert_match(/\Ardkafka: \d+ of its native threads are alive/, unsafe["reason"])
    assert_equal unsafe["pid"], discarded["source"]
    assert_includes discarded["reason"], unsafe["reason"]
    ask_every_worker(0, "/send")
  end

  private

  def app = "rdkafka"
end
