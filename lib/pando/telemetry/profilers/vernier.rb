# frozen_string_literal: true

require "vernier"

module Pando
  module Telemetry
    module Profilers
      # One Vernier profile, in the format of profiler.firefox.com. Its thread samples between start and stop only.
      #
      # @api private
      class Vernier
        NAME = "vernier"
        INTERVAL = 200 # microseconds: a first request is short

        def start
          @collector = ::Vernier::Collector.new(:wall, interval: INTERVAL)
          @collector.start
        end

        def stop
          @result = @collector.stop
        end

        # @param path [String]
        def write(path)
          @result.write(out: path)
        end
      end
    end
  end
end
