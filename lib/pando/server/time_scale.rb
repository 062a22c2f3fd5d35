# frozen_string_literal: true

require "pando/errors"

module Pando
  class Server
    # The lab's time: a second of a load test stands for many of production. `refork :auto` and the proof of a new
    # generation divide their seconds by it (docs/lab.md). Read in the monitor.
    #
    # @api private
    module TimeScale
      VARIABLE = "PANDO_TIME_SCALE"

      # @return [Float] 1.0 unless the environment says otherwise
      # @raise [ConfigError] not a number of 1 or more
      def self.read(environment = ENV)
        scale = Float(environment.fetch(VARIABLE, "1"), exception: false)
        return scale if scale && scale >= 1 && scale.finite?

        raise ConfigError, "#{VARIABLE} must be a number of 1 or more, and is #{environment[VARIABLE].inspect}: " \
                           "set it for load tests only, or leave it out"
      end
    end
  end
end
