# frozen_string_literal: true

module Chaos
  # Orders jobs all the time, in a thread of the harness, but never more than nodes at full strength can do in a few
  # seconds.
  class Orders
    PAUSE = 0.125 # seconds between two orders, on average
    WAITING = 60
    # Seconds that a job takes.
    MIX = [*[0.05] * 6, *[0.3] * 3, 1.2].freeze
    # Jobs in the queue when the server is told to stop.
    LAST = 20

    # @param stage [Stage] @param ledger [JobLedger]
    def initialize(stage, ledger, seed)
      @stage = stage
      @ledger = ledger
      @random = Random.new(seed)
      @number = 0
    end

    def start = @thread = Thread.new { run }

    def stop
      @stopping = true
      @thread&.join
    end

    def last = LAST.times { order }

    private

    def run
      until @stopping
        order if @stage.jobs_waiting.size < WAITING
        sleep @random.rand * 2 * PAUSE
      end
    end

    def order
      name = format("j%06d", @number += 1)
      @ledger.ordered(name)
      @stage.order(name, MIX.sample(random: @random).to_s)
    end
  end
end
