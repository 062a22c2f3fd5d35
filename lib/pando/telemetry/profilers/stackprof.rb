# frozen_string_literal: true

require "json"
require "stackprof"

module Pando
  module Telemetry
    module Profilers
      # One profile by StackProf, by the clock on the wall, as JSON: `stackprof FILE` and speedscope.app read it.
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

        # StackProf leaves its signal ignored: an application that had a use for it has it back. Where nobody had,
        # it stays ignored, lest a last tick ends the process.
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
