# frozen_string_literal: true

require "test_helper"
require "support/folder_jobs"

# Promise: Pando::Batch::Consumer is a runner: its node is reforked between two batches.
class SwarmBatchTest < Minitest::Test
  include Support::FolderJobs

  CONSUMER = File.expand_path("../../fixtures/swarm/folder_consumer.rb", __dir__)

  CONFIG = <<~RUBY.freeze
    require #{CONSUMER.inspect}
    rollout canary: { requests: 3, seconds: 0.1, longest: 2 }
    node(:orders, count: 2, concurrency: 2, refork: [15]) { |node| FolderConsumer.new(node) }
  RUBY

  def test_every_item_is_done_while_generations_change
    server = serve(command: "swarm", listen: false, config: CONFIG)
    names = Array.new(100) { |number| "#{"abc"[number % 3]}#{number + 100}" }
    names.each { |name| order(server, name, "0.01") }
    wait_for_jobs(server, "done", names)
    server.wait_past("refork.finished")

    assert_equal(names.sort, jobs(server, "done"))
    assert_empty(server.complaints)
  end
end
