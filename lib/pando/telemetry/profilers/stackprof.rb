# frozen_string_literal: true

require "json"
require "stackprof"

module Pando
  module Telemetry
    module Profilers
      # One StackProf profile by wall-clock time, as JSON for `stackprof FILE` and speedscope.app.
      #
      # @api private
      class Stackprof
        NAME = "stackprof"
        INTERVAL = 200 # microseconds: a first request is short
        SIGNAL = "ALRM"

        def start
          @handler = trap(SIGNAL, "DEFAULT")
          StackProf.start(mode: :wall, interval: INTERVAL, raw: true)
        end

        # StackProf leaves its signal ignored. Gives an application that had a handler its handler back. Otherwise the
        # signal stays ignored, because a last tick would end the process.
        def stop
          StackProf.stop
          trap(SIGNAL, @handler) unless @handler == "DEFAULT"
        end

        # @param path [String]
        def write(path)
          File.write(path, JSON.generate(StackProf.results))
        end
      end
    end
  end
end
