# frozen_string_literal: true

require "pando/doctor/subject/place_signal"
require "pando/doctor/subject/snapshot"
require "pando/http"

module Pando
  module Doctor
    module Subject
      # What a worker does on the doctor's stage: HTTP::Work, the server's own, on a listener
      # that only this worker has, and beside it a socket for the doctor's questions.
      #
      # @api private
      class Work
        def initialize(app, config, stage)
          @app = app
          @config = config
          @stage = stage
        end

        # (see HTTP::Work#start)
        def start(worker)
          path = Work.path(@stage.wire.folder, worker.slot, worker.generation, Process.pid)
          @listener = UNIXServer.new("#{path}.http")
          @questions = Socket.new(:UNIX, :DGRAM)
          @questions.bind(Addrinfo.unix("#{path}.ask"))
          # For writing and reading, so that no end must be there first.
          @place = File.open("#{path}.place".tap { |name| File.mkfifo(name) }, File::RDWR | File::NONBLOCK)
          Pando.keep_io(*ios)
          Sys.tell_place_on(PLACE_SIGNAL, @place)
          @http = HTTP::Work.new(@app, [@listener], @config)
          @http.start(worker)
        end

        # Where a worker is met.
        def self.path(folder, slot, generation, pid) = File.join(folder, "#{slot}.#{generation}.#{pid}")

        def sources = [*@http.sources, [@questions, false]]

        def ready(source)
          source.equal?(@questions) ? answer(@questions.recv(100)) : @http.ready(source)
        end

        def idle = @http.idle
        def stop(deadline = nil) = @http.stop(deadline)
        def ios = [@listener, @questions, @place].compact
        def close = ios.each(&:close)

        # Objects end from now on.
        def farewell = Recorder.phase = :leaving

        private

        def answer(question)
          case question
          when "snapshot" then @stage.tell(:served)
          when "everything" then @stage.tell(:served, everything: true)
          when "count" then count
          when "before" then lazy_state(:before)
          when "after" then lazy_state(:after)
          end
        end

        def count
          Recorder.phase = :collecting
          GC.start
          Recorder.phase = nil
          @stage.wire.tell(count: Dir.children("/proc/self/fd").size, pid: Process.pid,
                           lines: @stage.snapshot.io_counts)
        end

        # See Doctor::LazyState, where it exists.
        def lazy_state(moment)
          result = LazyState.public_send(moment)
          result = { findings: result } if result.is_a?(Array)
          facts = result.is_a?(Hash) ? result : {}
          findings = Array(facts[:findings]).map(&:to_h)
          @stage.wire.tell(lazy: moment, pid: Process.pid, findings: findings, figures: facts[:figures])
        rescue StandardError => error
          @stage.wire.tell(lazy: moment, pid: Process.pid, error: "#{error.message} (#{error.class})")
        end
      end
    end
  end
end
