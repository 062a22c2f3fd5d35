# frozen_string_literal: true

require "forwardable"
require "json"
require "pando/doctor/subject/snapshot"
require "pando/fork_safety/process_state"
require "pando/http"
require "stringio"

module Pando
  module Doctor
    module Subject
      # A Rack application around the examined one: reports requests that change their process's state in the kernel.
      class StateWatch
        # @param allowed [#call] whether the configuration allows a change
        def initialize(app, wire, allowed)
          @app = app
          @wire = wire
          @allowed = allowed
        end

        def call(env)
          report_changes # of the request before: an idle worker accepts without the event loop
          @request = "#{env["REQUEST_METHOD"]} #{env["PATH_INFO"]}"
          @before = ForkSafety::ProcessState.take
          @app.call(env)
        end

        # Called when the request is over and its body sent.
        def report_changes
          before = @before or return
          @before = nil
          changes = ForkSafety::ProcessState.changes(before, ForkSafety::ProcessState.take)
          changes.reject { |change| @allowed.call(change) }.each { |change| tell(change) }
          nil
        end

        private

        def tell(change)
          finding = change.finding
          @wire.tell(record: :changed_state, pid: Process.pid, request: @request, key: change.key, change: change.to_s,
                     severity: change.customary? ? :note : finding.severity, advice: finding.advice)
        end
      end

      # The work of a worker on the stage: the server's own HTTP::DirectHandler on a listener that only this worker has,
      # and a socket for the doctor's questions.
      class Handler
        extend Forwardable

        # Bytes of a question.
        LONGEST = 65_536
        # Requests for the tables of private memory and of calls.
        SAMPLE = 5

        def initialize(app, config, payload)
          @app = app
          @config = config
          @payload = payload
        end

        # (see HTTP::DirectHandler#start)
        def start(worker)
          name = "#{worker.slot}.#{worker.generation}.#{Process.pid}" # Conversation knows it
          path = File.join(@payload.wire.folder, name)
          @listener = UNIXServer.new("#{path}.http")
          @questions = Socket.new(:UNIX, :DGRAM)
          @questions.bind(Addrinfo.unix("#{path}.ask"))
          # Open at both ends, so that neither has to wait for the other.
          @place = File.open("#{path}.place".tap { |name| File.mkfifo(name) }, File::RDWR | File::NONBLOCK)
          Pando.keep_io(*ios)
          Sys.tell_place_on(PLACE_SIGNAL, @place)
          @watch = StateWatch.new(@app, @payload.wire, @payload.allowed_changes)
          @http = HTTP::DirectHandler.new(@watch, [Cluster::Listening::Listener.new(@listener)], @config)
          @http.start(worker)
        end

        def sources = [*@http.sources, [@questions, nil]]

        def ready(source)
          return answer(@questions.recv(LONGEST)) if source.equal?(@questions)

          @http.ready(source)
        ensure
          @watch.report_changes
        end

        # The rest of what a worker asks of its work (see HTTP::Handler).
        def_delegators :@http, :idle, :step_back, :resume, :stop, :failure, :serve_out, :rest?, :patience,
                       :go_on, :abandon, :quiet, :try_out, :drained?, :pulse

        def ios = [@listener, @questions, @place].compact
        def close = ios.each(&:close)

        private

        def answer(question)
          @watch.report_changes
          case question
          when "snapshot" then @payload.tell(:served)
          when "everything" then @payload.tell(:served, everything: true)
          when "count" then count
          when "turn" then turn
          when "use" then @payload.wire.tell(use: @payload.use.used, pid: Process.pid)
          when /\Alazy / then lazy_state(**JSON.parse(File.read(question[5..]), symbolize_names: true))
          end
        end

        # The doctor sends the next requests to this worker only.
        def turn
          @payload.use.start
          @payload.wire.tell(turn: true, pid: Process.pid)
        end

        def count
          Instruments.phase = :collecting
          GC.start
          Instruments.phase = nil
          @payload.wire.tell(count: Sys.descriptor_count, pid: Process.pid,
                             lines: @payload.snapshot.io_counts)
        end

        # Measures what the first requests build, in children of this worker, which itself does not change.
        # @param requests [Array<String>] as sent over a connection, in Base64
        # @param times [Integer] how often each is served @param seconds [Float] for each child
        # @param parallel [Boolean] whether the children run at the same time
        def lazy_state(requests:, times:, seconds:, parallel:)
          require "pando/doctor/lazy_state"
          requests = requests.map { |text| text.unpack1("m0") }
          few = ->(_number) { serve_all(requests.first(SAMPLE)) }
          result = LazyState.examine(requests: times, root: @config.directory, timeout: seconds, sample: few,
                                     parallel: parallel) { serve_all(requests) }
          shared, reason = shared_state(requests.first(SAMPLE), seconds)
          tell_lazy([result.figures[:undone], reason], result.findings.map(&:to_h) + shared,
                    result.figures.except(:undone))
        rescue StandardError => error
          tell_lazy(["#{error.message} (#{error.class})"])
        end

        # @param reasons [Array<String, nil>] why something could not be measured
        def tell_lazy(reasons, findings = [], figures = nil)
          reasons = reasons.compact
          @payload.wire.tell(lazy: true, pid: Process.pid, findings: findings, figures: figures,
                             error: (reasons.join("; ") if reasons.any?))
        end

        # @return [Array(Array<Hash>, String)] findings, and why there are none
        def shared_state(requests, seconds)
          return [[]] unless @payload.threads?

          require "pando/doctor/subject/shared_state"
          [JSON.parse(LazyState::ForkedRun.new(timeout: seconds).once do
            JSON.generate(SharedState.new(@app).findings(requests) { |request| serve(request.b) }.map(&:to_h))
          end)]
        rescue LazyState::ForkedRun::Failed => e
          [[], "shared state: #{e.message}"]
        end

        def serve_all(requests) = requests.each { |request| serve(request.b) }

        # With the server's own Rack environment, but without a client.
        def serve(request)
          limits = HTTP::Limits.new(@config)
          parser = HTTP::Parser.new(limits.max_header_bytes, limits.max_target_bytes, limits.max_headers)
          raise ArgumentError, "not a request: #{parser.reason}" unless parser.run(request) == true

          env = HTTP::Environment.new(@listener).build(parser, request, nil)
          body = request.byteslice(parser.head_size..)
          env["rack.input"] = StringIO.new(body.b) unless body.empty?
          _, _, parts = @app.call(env)
          parts.respond_to?(:each) && parts.each { nil }
          env
        ensure
          parts.close if parts.respond_to?(:close)
        end
      end
    end
  end
end
