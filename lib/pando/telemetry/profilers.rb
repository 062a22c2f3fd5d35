# frozen_string_literal: true

require "json"
require "pando/errors"

module Pando
  module Telemetry
    # The profilers that Pando can use. They are gems in the application's bundle. Pando requires one only if a setting
    # asks for it.
    #
    # @api private
    module Profilers
      ADVICE = "add `gem \"vernier\"` (Ruby 3.2.1 or newer) or `gem \"stackprof\"` to the Gemfile"
      INTERVAL = 200 # microseconds: a first request is short

      # One Vernier profile, in the format of profiler.firefox.com. Its thread samples between start and stop only.
      class Vernier
        NAME = "vernier"

        def start = @collector = ::Vernier::Collector.new(:wall, interval: INTERVAL).tap(&:start)
        def stop = @result = @collector.stop
        # @param path [String]
        def write(path) = @result.write(out: path)
      end

      # One StackProf profile by wall-clock time, as JSON for `stackprof FILE` and speedscope.app.
      class Stackprof
        NAME = "stackprof"
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
        def write(path) = File.write(path, JSON.generate(StackProf.results))
      end

      # @return [Class] the first one that is installed. Its instances have #start, #stop and #write(path)
      # @raise [BootError] if none is installed
      def self.installed
        [Vernier, Stackprof].find { |profiler| available?(profiler::NAME) } or
          raise BootError, "first_request_profile needs a profiler: #{ADVICE}"
      end

      def self.available?(gem)
        require gem
        true
      rescue LoadError => e
        raise unless e.path == gem

        false
      end
      private_class_method :available?
    end
  end
end
