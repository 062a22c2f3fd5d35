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
