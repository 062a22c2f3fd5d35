# frozen_string_literal: true

require "support/fair_clock"

module Support
  # Tests wait for a condition, with a deadline. They never guess how long something takes.
  module Waiting
    class TimedOut < StandardError; end

    POLL_INTERVAL = 0.01
    PATIENCE = 90 # seconds: a generous limit costs nothing, and a machine may be very busy

    # Lets time pass that is part of what is tested: a client's pace, how long a fault or an app's work lasts. To wait
    # for something there is wait_until.
    def pause(seconds) = sleep(seconds)

    # Seconds for which what changes by itself must be the same.
    STILL = 0.3

    # Waits until the block returns the same for a while: a process that has just been born or ended may show for a
    # moment what it, or its parent, is about to put away.
    # @return [Object] that
    def wait_until_still(**options)
      seen = since = nil
      wait_until(**options) do
        value = yield
        seen, since = value, FairClock.now unless value && value == seen # rubocop:disable Style/ParallelAssignment
        value if value && FairClock.now - since >= STILL
      end
    end

    # @param timeout [Numeric] seconds
    # @param message [String, Proc] what the test waits for; a Proc may show the current state instead
    # @return the first truthy value of the block
    # @raise [TimedOut]
    def wait_until(timeout: PATIENCE, message: "the condition")
      deadline = FairClock.now + timeout
      loop do
        value = yield
        return value if value

        if FairClock.now > deadline
          message = message.call if message.respond_to?(:call)
          raise TimedOut, "waited #{timeout} s for #{message}"
        end
        IO.select(nil, nil, nil, POLL_INTERVAL)
      end
    end
  end
end
