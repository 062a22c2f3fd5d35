# frozen_string_literal: true

module Pando
  module Telemetry
    class FirstRequest
      # Wraps the application for one request of one worker, and is then replaced by the application. Writes the
      # profile when the client has its answer. If the profile fails, the request still goes on.
      #
      # @api private
      class App
        # @param app [#call]
        # @param profile [FirstRequest]
        # @param worker [Cluster::Worker]
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
          end_recording(recording, env) if recording && Process.pid == @pid
          @afterwards&.call(@app)
        end

        private

        # @return [Array(#stop, Artefact), nil]
        def begin_recording
          artefact = @profile.claim(@worker.generation)
          return unless artefact

          @pid = Process.pid
          profiler = @profile.profiler
          profiler.start
          @started = now
          [profiler, artefact]
        rescue StandardError => e
          fail_with(e, artefact)
        end

        def end_recording((profiler, artefact), env)
          seconds = now - @started
          profiler.stop
          (env["rack.response_finished"] ||= []) << ->(*) { write(profiler, artefact, request(env), seconds) }
        rescue StandardError => e
          fail_with(e, artefact)
        end

        def write(profiler, artefact, request, seconds)
          profiler.write(artefact.part)
          artefact.finish
          emit("profile.written", path: artefact.path, request: request, seconds: seconds)
        rescue StandardError => e
          fail_with(e, artefact)
        end

        def fail_with(error, artefact)
          artefact&.give_up
          emit("profile.failed", reason: "#{error.message} (#{error.class})")
        end

        def emit(name, **payload)
          Events.emit(name, slot: @worker.slot, generation: @worker.generation, pid: @worker.pid, **payload)
          nil
        end

        def request(env) = "#{env["REQUEST_METHOD"]} #{env["PATH_INFO"]}"
        def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
      end
    end
  end
end
