# frozen_string_literal: true

require "test_helper"
require "support/load"
require "support/servers"

# Promise: a graceful stop finishes every request that has begun, also in workers that have just come up.
class StopDuringRolloutTest < Minitest::Test
  include Support::Servers

  ROUNDS = 6

  def teardown
    @load&.stop
    super
  end

  def test_every_request_that_began_is_answered
    ROUNDS.times do |round|
      server = serve(app: Support::Load::APP, config: "workers 4\nrefork after: [10]")
      @load = Support::Load.start(server.method(:connect), clients: 6, seconds: 0.01)
      @load.wait_for_answers(40 + (round * 10))
      assert_empty(lost(server))
    end
  end

  private

  # Stops the server, and its clients.
  #
  # @return [Array<Integer>] the requests that began and were not answered
  def lost(server)
    File.open(File.join(server.folder, "begun")) do |begun| # the folder goes with the server
      server.wait_for("worker.spawning") # now it is in the middle of a rollout
      assert_predicate(server.stop, :success?, server.output)
      answered = @load.stop.outcomes.select(&:pid).map(&:number)
      begun.each_line.map(&:to_i) - answered
    end
  end
end
