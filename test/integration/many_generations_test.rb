# frozen_string_literal: true

require "test_helper"
require "json"
require "support/servers"

# Each generation is forked from a worker of the one before: what one of them leaves behind, all of them pay for.
# PANDO_GENERATIONS says how many there are.
class ManyGenerationsTest < Minitest::Test
  include Support::Servers

  GENERATIONS = Integer(ENV.fetch("PANDO_GENERATIONS", 100))
  SAMPLE = 20
  # How much of the stack one generation may leave occupied.
  LEFT = 1 / 30_000.0

  APP = <<~RUBY
    require "json"

    module Depth
      def self.free
        @deepest = 0
        dive(1)
      rescue SystemStackError
        @deepest
      end

      def self.dive(depth)
        @deepest = depth
        dive(depth + 1)
      end
    end

    run ->(_env) { [200, {}, [JSON.generate(frames: caller.size, free: Depth.free)]] }
  RUBY

  def test_the_last_generation_is_like_the_first
    server = serve(app: APP, config: "workers 1\nrefork :manual")
    first = after_refork(server)
    (GENERATIONS - 2).times { server.refork }
    last = after_refork(server)

    assert_equal(GENERATIONS, server.events("refork.finished").last["generation"])
    assert_equal(first[:frames], last[:frames])
    assert_in_delta(first[:free], last[:free], first[:free] * LEFT * GENERATIONS, "frames left on the stack")
    assert_equal(first[:descriptors], last[:descriptors])
    assert_as_fast(server.events("refork.finished").map { |event| event["seconds"] })
  end

  private

  def after_refork(server)
    server.refork
    stack = JSON.parse(server.get("/").body, symbolize_names: true)
    stack.merge(descriptors: wait_until_still(message: "the old generation's end") { descriptors(server) })
  end

  def descriptors(server)
    processes = server.processes
    return unless processes.size == 4 # monitor, reactor, mold, worker

    processes.to_h { |process| [process.title[/\Apando \w+/], process.descriptor_kinds] }
  end

  # The best of many, so that a busy machine makes no difference.
  def assert_as_fast(seconds)
    first, last = [seconds.first(SAMPLE), seconds.last(SAMPLE)].map(&:min)

    assert_operator(last, :<, (first * 3) + 0.1)
  end
end
