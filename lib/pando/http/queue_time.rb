# frozen_string_literal: true

module Pando
  module HTTP
    # How long a request has waited for a worker: since the first proxy saw it, if
    # that says so in X-Request-Start, else since the reactor had all of it. In
    # direct mode nobody else knows.
    #
    # Proxies write that field in seconds, milliseconds or microseconds of Unix
    # time, with or without "t=" before it; the magnitude tells. What cannot be is
    # not believed: a client may send the field as well.
    #
    # @api private
    module QueueTime
      FIELD = "HTTP_X_REQUEST_START"
      # Seconds that a request waits at most.
      LONGEST = 3600.0

      class << self
        # @param env [Hash]
        # @param waited [Float, nil] seconds in the reactor's queue
        # @return [Float, nil] seconds
        def of(env, waited)
          field = env[FIELD]
          (field && since(field)) || waited
        end

        private

        def since(field)
          digits = field[/\A(?:t=)?(\d{10,16}(?:\.\d{1,9})?)\z/, 1]
          return unless digits

          seconds = Process.clock_gettime(Process::CLOCK_REALTIME) - unix_time(digits.to_f)
          seconds.clamp(0.0, nil) if seconds.between?(-1.0, LONGEST) # clocks of two machines
        end

        def unix_time(number)
          return number if number < 1e11

          number < 1e14 ? number / 1e3 : number / 1e6
        end
      end
    end
  end
end
