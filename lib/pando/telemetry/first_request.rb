# frozen_string_literal: true

require "fileutils"
require "json"
require "pando/errors"
require "pando/events"

module Pando
  module Telemetry
    # Profiles the first request that a generation serves. The profile shows the work that was not done at boot. The
    # mold of a cold boot makes this object, and all processes that are forked from it inherit it.
    #
    # @api private
    class FirstRequest
      # @param folder [String] of the profiles; created if it does not exist
      # @raise [BootError] if no profiler is installed, or the folder is not writable
      def initialize(folder, profiler = Profilers.installed)
        @profiler = profiler
        @folder = folder
        @run = "#{Time.now.strftime("%Y%m%d-%H%M%S")}-#{Process.pid}"
        FileUtils.mkdir_p(folder)
        raise Errno::EACCES, folder unless File.writable?(folder)
      rescue SystemCallError => e
        raise BootError, "first_request_profile cannot write its profiles: #{e.message}"
      end

      # Wraps the application until its first request is over.
      def wrap(app, worker) = App.new(app, self, worker)

      # @return [String, nil] the path of the profile, which is written to {App::PART} first; nil if another worker of
      #   the generation has claimed it
      def claim(generation)
        path = File.join(@folder, "first-request-#{@run}-generation-#{generation}.#{@profiler::NAME}.json")
        File.open(part = path + App::PART, File::WRONLY | File::CREAT | File::EXCL) { nil }
        return path unless File.exist?(path)

        File.delete(part) # another process has just finished it
        nil
      rescue Errno::EEXIST
        nil
      end

      def profiler = @profiler.new

      # Wraps the application for one request of one worker, and is then replaced by the application. Writes the
      # profile when the client has its answer. If the profile fails, the request still goes on.
      class App
        # The end of a profile's name until it is complete.
        PART = ".part"

        def initialize(app, profile, worker)
          @app = app
          @profile = profile
          @worker = worker
        end

        # @yield [app] when this wrapper is no longer needed
        def afterwards(&block) = @afterwards = block

        def call(env)
          recording = begin_recording
          @app.call(env)
        ensure
          end_recording(*recording, env) if recording && Process.pid == @pid
          @afterwards&.call(@app)
        end

        private

        # @return [Array(#stop, String), nil]
        def begin_recording
          path = @profile.claim(@worker.generation) or return
          @pid = Process.pid
          profiler = @profile.profiler
          profiler.start
          @started = now
          [profiler, path]
        rescue StandardError => e
          fail_with(e, path)
        end

        def end_recording(profiler, path, env)
          seconds = now - @started
          profiler.stop
          request = "#{env["REQUEST_METHOD"]} #{env["PATH_INFO"]}"
          (env["rack.response_finished"] ||= []) << ->(*) { write(profiler, path, request, seconds) }
        rescue StandardError => e
          fail_with(e, path)
        end

        def write(profiler, path, request, seconds)
          profiler.write(path + PART)
          File.rename(path + PART, path)
          emit("profile.written", path: path, request: request, seconds: seconds)
        rescue StandardError => e
          fail_with(e, path)
        end

        def fail_with(error, path)
          FileUtils.rm_f(path + PART) if path
          emit("profile.failed", reason: "#{error.message} (#{error.class})")
        end

        def emit(name, **payload)
          Events.emit(name, slot: @worker.slot, generation: @worker.generation, pid: @worker.pid, **payload)
          nil
        end

        def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
      end
    end

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

        def write(path) = File.write(path, JSON.generate(StackProf.results))
      end

      # The best first.
      ALL = [Vernier, Stackprof].freeze

      # @return [Class] the first one that is installed. Its instances have #start, #stop and #write(path)
      # @raise [BootError] if none is installed
      def self.installed
        ALL.find { |profiler| available?(profiler::NAME) } or
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
