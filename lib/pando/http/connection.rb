# frozen_string_literal: true

require "pando/events"
require "pando/fork_safety/audit/sites"
require "pando/http/client_handle"
require "pando/http/errors"
require "pando/http/response"
require "pando/http/stray"
require "pando/http/timeout"
require "pando/sys"

module Pando
  module HTTP
    # Serves one request from its first byte to the end of its answer: reads it, calls the application, sends the
    # response, closes its body. In direct mode that is all of a connection. No client, however broken, makes {#serve}
    # raise, and whatever the application raises becomes an answer.
    #
    # Owned by a handler: one per worker, for one client after the other, because a request is too short for objects of
    # its own. The methods stand in the order in which a request runs through them.
    class Connection
      # The application from the next request on.
      attr_writer :app

      # @param worker [Cluster::Worker, NoWorker] @param limits [Limits] @param reader [RequestReader]
      # @param soft_timeout [SoftTimeout, ThreadTimeout] @param record [Cluster::JobRecord] of the requests
      def initialize(app, worker, limits, reader, soft_timeout, record: worker)
        @app = app
        @worker = worker
        @limits = limits
        @reader = reader
        @soft_timeout = soft_timeout
        @record = record
        @pid = Process.pid
        @forks = Sys.forks
        @stray = false
        @spare_request = Request.new
        Stray.watch(self)
      end

      # @raise [HookError, SystemExit, SignalException] from the application's own code
      def serve(client, environment)
        @client = client
        @environment = environment
        @closed = false
        reader.read_head(client) ? handle : close
      rescue Refused => e
        refuse(e)
      rescue NoProxy => e
        Events.emit("proxy.refused", slot: worker.slot, generation: worker.generation, pid: Process.pid,
                                     remote: @client.remote, reason: e.message)
        close
      rescue ClientGone
        close
      ensure
        @client.reset unless @closed
        forget
      end

      # In a child that the application has forked. The client is the parent's, so that nothing which the child still
      # runs of the request can answer it.
      def mark_stray
        @stray = true
        @client&.disown
      end

      private

      attr_reader :reader, :worker, :record, :limits

      # The head is read.
      def handle
        build_request(reader.parser)
        record.job_started(@request.verb, @request.path, nil, nil)
        record.job_retried if @request.env.key?("pando.retry")
        begin
          @request.attach(@body = reader.read_body(@client, @request.path))
          answer
        rescue SystemExit, SignalException => e
          raise # and the monitor sees which request ended this process
        ensure
          @body&.close
          end_stray if stray?
          record.job_finished unless e
        end
      end

      def build_request(parser)
        env = @environment.build(parser, reader.buffer, @client.remote)
        @client.introduce(env, reader)
        env["rack.hijack"] = env["pando.client"] = ClientHandle.new(@client, env)
        env["rack.early_hints"] = EarlyHints.new(@client) if limits.early_hints && parser.minor.positive?
        @request = @spare_request.begin(env, parser.minor)
        raise Refused.new(501, "CONNECT is for proxies") if parser.connect?
        raise Refused.new(421, "https on a plain connection") if parser.https?

        refuse_poison
      end

      # Requests of this method and path have ended workers.
      def refuse_poison
        seconds = worker.refused_for(@request.verb, @request.path) or return
        raise Refused.new(503, "#{@request.verb} #{@request.path} has ended workers", "retry-after" => seconds.to_s)
      end

      # The request is complete, but for a body that is streamed.
      def answer
        call_with_timeout
      ensure
        @whole ? close(reader.unfinished?) : lose
        finish
      end

      # Sets @whole if the client has got a whole answer.
      def call_with_timeout
        @whole = false
        @timeout = start_timeout
        @soft_timeout.during(@timeout) { call_and_deliver }
      rescue RequestTimeout => e
        timed_out(e)
      rescue ClientGone => e
        @error = e
      rescue Exception => e # rubocop:disable Lint/RescueException
        came_to_nothing(e)
      ensure
        failed(ThreadError.new("the thread was ended (Thread#kill)")) unless @whole || @error || @client.cut?
        # The application has rescued RequestTimeout. If it has raised something else, or its body was not usable,
        # the client has no answer yet.
        timed_out(@timeout.error(@error)) if @timeout&.fired? && !@error.is_a?(RequestTimeout)
      end

      def start_timeout
        @started = limits.timeout ? record.job_deadline(limits.timeout, limits.hard_timeout) : Sys.now
        timeout = Timeout.new(record, limits.timeout, limits.timeout_grace, @started,
                              patience: limits.patience, streaming: limits.timeout_streaming,
                              env: @request.env)
        @request.env["pando.timeout"] = @client.timeout = timeout
      end

      def call_and_deliver
        body = nil
        @status, @fields, body = call_application
        record.job_failed if @status.to_i >= 500
        unless @client.handed_over?
          @timeout.check
          Response.deliver(@client, @request, @status, @fields, body)
        end
        @whole = true
      ensure
        end_stray if @stray
        close_body(body) if body.respond_to?(:close)
      end

      def call_application
        @app.call(@request.env)
      ensure
        end_stray if stray?
      end

      def close_body(body)
        body.close
      ensure
        end_stray if @stray
      end

      # A library in C may have called fork(2), of which Ruby tells nothing.
      def stray? = @stray || Sys.forks != @forks

      # A process that the application forked must not return as a second worker. It ends where the application's code
      # returns, before the server does anything on its behalf.
      def end_stray
        Events.emit("orphan.exited", pid: Process.pid, parent: @pid,
                                     reason: "it was forked in a request and returned to the server: end it with exit!")
        exit!(1)
      end

      # After a RequestTimeout, {#call_with_timeout} tells also what the application made of it.
      def came_to_nothing(error)
        @error = error
        leave_without_memory(error)
        unless @timeout&.exceeded?
          error.is_a?(Refused) ? refused_late(error) : failed(error)
        end
        raise error if error.is_a?(SystemExit) || error.is_a?(SignalException)
      end

      # The state of the application is in doubt.
      def leave_without_memory(error)
        worker.leave("out of memory") if error.is_a?(NoMemoryError)
      end

      def failed(error)
        record.job_failed
        emit("request.failed", error)
        answer_with(500)
      end

      # The client's fault, found while the application read a streamed body.
      def refused_late(refused)
        tell_refused(refused)
        answer_with(refused.status)
      end

      # The worker leaves, because the state of the application is unknown from here on.
      def timed_out(error)
        @error = error
        record.job_timed_out
        emit("request.timed_out", error, ForkSafety::Audit::Sites.application_line(error.backtrace))
        answer_with(504)
        worker.run_hook(:after_worker_timeout, error)
      ensure
        end_stray if @stray
        worker.leave("timeout")
      end

      # Sends an answer of the server's own, unless it is too late for that.
      def answer_with(status)
        return unless @client.unanswered?

        Response.plain(@client, @request, status).deliver
        @status = status
        @fields = nil
        @whole = true
      rescue ClientGone
        nil # nobody is left to tell
      end

      # The client has its answer: runs the application's callbacks, then the hook.
      def finish
        finished = @request.env["rack.response_finished"] # values_at would make an Array for each request
        after_reply = @request.env["rack.after_reply"]
        within_time { run_callbacks(finished, after_reply) } if finished&.any? || after_reply&.any?
        run_hook if worker.hook?(:after_request_complete)
      ensure
        @timeout&.finish
        @timeout&.slow&.over(@request.env, @status, Sys.now - @started)
        @timeout = @status = @fields = @error = nil
      end

      # Runs what the application has to do after its answer, with a deadline of its own.
      def within_time(&)
        return yield unless @timeout

        told = @timeout.fired?
        @timeout.begin_anew
        begin
          @soft_timeout.during(@timeout, &)
        rescue RequestTimeout
          raise unless @timeout.fired? # it is the application's own
        end
        timed_out(@timeout.error) if @timeout.fired? && !told
      end

      # @param after_reply [Array<Proc>, nil] Puma's callbacks
      def run_callbacks(finished, after_reply)
        finished&.reverse_each do |callback|
          run_callback { callback.call(@request.env, @status, @fields, @error) }
        end
        after_reply&.each { |callback| run_callback { callback.call } }
      end

      def run_callback
        begin
          yield
        ensure
          end_stray if @stray
        end
      rescue SystemExit, SignalException
        raise
      rescue Exception => e # rubocop:disable Lint/RescueException -- also NotImplementedError and LoadError
        leave_without_memory(e)
        emit("request.failed", e) unless e.is_a?(RequestTimeout) && @timeout&.fired?
      end

      def run_hook
        within_time { worker.run_hook(:after_request_complete, @request.env) }
      end

      # Answers a request that the application does not get.
      def refuse(refused)
        tell_refused(refused)
        @client.last!
        Response.plain(@client, @request, refused.status, refused.fields).deliver
        close(true)
      rescue ClientGone
        close
      end

      def close(linger = false) # rubocop:disable Style/OptionalBooleanParameter -- a keyword costs every request
        @closed = true
        @client.finish(reader.buffer, linger)
      end

      # The answer is not whole.
      def lose
        if (rate = @client.slow_rate)
          worker.reader_lost("#{@client.remote || "a client without an address"}, #{rate} bytes/s",
                             "#{@request.verb} #{@request.path}")
        end
        @closed = true
        @client.reset
      end

      # An idle worker must not keep the request's memory.
      def forget
        @client = @request = @body = nil
        @spare_request.forget
      end

      def tell_refused(refused)
        Events.emit("request.refused", slot: worker.slot, generation: worker.generation, pid: Process.pid,
                                       status: refused.status, reason: refused.message, remote: @client.remote,
                                       method: @request&.verb, path: @request&.path)
      end

      def emit(name, error, location = nil)
        Events.emit(name, slot: worker.slot, generation: worker.generation, pid: Process.pid,
                          method: @request.verb, path: @request.path, seconds: Sys.now - @started,
                          queued: @request.env["pando.queue_time"], lock_wait: lock_wait, location: location,
                          error: error)
      end

      # @return [Float, nil] seconds that the request has waited for the interpreter lock; nil: hardly any
      def lock_wait = record.lock_wait.round(3).nonzero?
    end

    # Stands for the worker in a process that answers requests without being one: a mold that warms itself up, and a
    # test process that serves system tests. It records nothing.
    module NoWorker
      module_function

      def slot = 0
      def generation = 0
      def refused_for(*) = nil
      def job_started(*) = nil
      def job_deadline(*) = Sys.now
      def job_streams = nil
      def job_retried = nil
      def lock_wait = 0.0
      def job_failed = nil
      def job_timed_out = nil
      def job_finished = nil
      def reader_lost(*) = nil
      def soft_deadline_passed? = false
      def leave(_reason) = nil
      def leaving? = false
      def hook?(_name) = false
      def run_hook(*) = nil
    end

    # What the server needs of a request after the application may have changed the environment. Owned by a
    # {Connection}, which uses one object for all requests.
    class Request
      # @return [String] without the query, which may hold a secret
      attr_reader :path
      # @return [0, 1] HTTP/1.0 or HTTP/1.1
      attr_reader :minor
      attr_reader :env, :verb, :input

      def begin(env, minor)
        @env = env
        @verb = env["REQUEST_METHOD"]
        @path = env["PATH_INFO"]
        @minor = minor
        @input = env["rack.input"]
        self
      end

      def forget
        @env = @verb = @path = @input = nil
      end

      def head? = @verb == "HEAD"

      # @return [Boolean] whether the client would go on in another protocol (RFC 9110 section 7.8)
      def upgrade? = @minor.positive? && @env.key?("HTTP_UPGRADE")

      # Stands for a request that could not be read.
      UNKNOWN = new.begin({ "REQUEST_METHOD" => "GET", "PATH_INFO" => "" }, 1).freeze

      def attach(body)
        return unless body

        @env["CONTENT_LENGTH"] ||= body.size.to_s if body.size
        @env["rack.input"] = @input = body.input
      end
    end
  end
end
