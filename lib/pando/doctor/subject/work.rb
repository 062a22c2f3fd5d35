# frozen_string_literal: true

require "forwardable"
require "json"
require "pando/doctor/subject/changes"
require "pando/doctor/subject/place_signal"
require "pando/doctor/subject/snapshot"
require "pando/http"
require "stringio"

module Pando
  module Doctor
    module Subject
      # What a worker does on the doctor's stage: HTTP::DirectHandler, the server's own, on a listener
      # that only this worker has, and beside it a socket for the doctor's questions.
      #
      # @api private
      class Work
        extend Forwardable

        # Bytes of a question.
        LONGEST = 65_536
        # Requests that the tables of private memory and of calls are made with.
        SAMPLE = 5

        def initialize(app, config, stage)
          @app = app
          @config = config
          @stage = stage
        end

        # (see HTTP::DirectHandler#start)
        def start(worker)
          path = Work.path(@stage.wire.folder, worker.slot, worker.generation, Process.pid)
          @listener = UNIXServer.new("#{path}.http")
          @questions = Socket.new(:UNIX, :DGRAM)
          @questions.bind(Addrinfo.unix("#{path}.ask"))
          # For writing and reading, so that no end must be there first.
          @place = File.open("#{path}.place".tap { |name| File.mkfifo(name) }, File::RDWR | File::NONBLOCK)
          Pando.keep_io(*ios)
          Sys.tell_place_on(PLACE_SIGNAL, @place)
          @changes = Changes.new(@app, @stage.wire, @stage.allowed_changes)
          @http = HTTP::DirectHandler.new(@changes, [Cluster::Listening::Listener.new(@listener)], @config)
          @http.start(worker)
        end

        # Where a worker is met.
        def self.path(folder, slot, generation, pid) = File.join(folder, "#{slot}.#{generation}.#{pid}")

        def sources = [*@http.sources, [@questions, nil]]

        def ready(source)
          return answer(@questions.recv(LONGEST)) if source.equal?(@questions)

          @http.ready(source)
        ensure
          @changes.look
        end

        # As a worker wants them (see Cluster::Payload#work).
        def_delegators :@http, :idle, :step_forward, :step_back, :resume, :stop, :serve_out,
                       :rest?, :patience, :go_on, :quiet, :try_out

        def ios = [@listener, @questions, @place].compact
        def close = ios.each(&:close)

        # Objects end from now on.
        def farewell = Recorder.phase = :leaving

        private

        def answer(question)
          @changes.look
          case question
          when "snapshot" then @stage.tell(:served)
          when "everything" then @stage.tell(:served, everything: true)
          when "count" then count
          when "turn" then turn
          when "use" then @stage.wire.tell(use: @stage.use.used, pid: Process.pid)
          when /\Alazy / then lazy_state(**JSON.parse(question.delete_prefix("lazy "), symbolize_names: true))
          end
        end

        # The next requests are for this worker only.
        def turn
          @stage.use.start
          @stage.wire.tell(turn: true, pid: Process.pid)
        end

        def count
          Recorder.phase = :collecting
          GC.start
          Recorder.phase = nil
          @stage.wire.tell(count: Dir.children("/proc/self/fd").size, pid: Process.pid,
                           lines: @stage.snapshot.io_counts)
        end

        # What the first requests build: measured in children of this worker, which itself stays as it is.
        # @param requests [Array<String>] as they come over a connection @param times [Integer] how often
        # @param seconds [Float] for each child @param parallel [Boolean] whether they run at the same time
        def lazy_state(requests:, times:, seconds:, parallel:)
          require "pando/doctor/lazy_state"
          few = ->(_number) { serve_all(requests.first(SAMPLE)) }
          result = LazyState.examine(requests: times, root: @config.directory, timeout: seconds, sample: few,
                                     parallel: parallel) { serve_all(requests) }
          @stage.wire.tell(lazy: true, pid: Process.pid, findings: result.findings.map(&:to_h),
                           figures: result.figures.except(:undone), error: result.figures[:undone])
        rescue StandardError => error
          @stage.wire.tell(lazy: true, pid: Process.pid, findings: [], error: "#{error.message} (#{error.class})")
        end

        def serve_all(requests) = requests.each { |request| serve(request.b) }

        # With the server's own environment, but without a client.
        def serve(request)
          limits = HTTP::Limits.new(@config)
          parser = HTTP::Parser.new(limits.max_header_bytes, limits.max_target_bytes, limits.max_headers)
          raise ArgumentError, "not a request: #{parser.reason}" unless parser.run(request) == true

          env = HTTP::Environment.new(@listener).build(parser, request, nil)
          body = request.byteslice(parser.head_size..)
          env["rack.input"] = StringIO.new(body.b) unless body.empty?
          _, _, parts = @app.call(env)
          parts.respond_to?(:each) && parts.each { nil }
        ensure
          parts.close if parts.respond_to?(:close)
        end
      end
    end
  end
end
