# frozen_string_literal: true

require "pando/events"
require "pando/fork_safety/audit/sites"
require "pando/http/errors"
require "pando/http/response"
require "pando/http/timeout"

module Pando
  module HTTP
    # One request answered: the application called, its response sent, its body
    # closed, whatever it raises turned into an answer. Owned by a {Connection}, for
    # one request after the other.
    #
    # @api private
    class Exchange
      # @param context [WorkerContext]
      def initialize(context)
        @context = context
      end

      # @return [Boolean] whether the client has a whole answer
      def whole?
        @whole
      end

      # @param client [Client, LaneClient] @param request [Request]
      # @return [void]
      # @raise [SystemExit, SignalException] when the application wants the process to end
      # @raise [HookError]
      def run(client, request)
        @client = client
        @request = request
        @whole = false
        @timeout = start_timeout
        @context.soft_timeout.during(@timeout) { answer }
      rescue RequestTimeout => e
        timed_out(e)
      rescue ClientGone => e
        @error = e
      rescue Exception => e # rubocop:disable Lint/RescueException
        came_to_nothing(e)
      ensure
        tell_of_timeout if @timeout&.fired? && !@error.is_a?(RequestTimeout)
      end

      # When the client has its answer: the application's callbacks, then the hook.
      def finish
        @request.env["rack.response_finished"]&.reverse_each { |callback| tell(callback) }
        @timeout&.finish
        worker.run_hook(:after_request_complete, @request.env) if worker.hook?(:after_request_complete)
      ensure
        @client = @request = @timeout = @status = @fields = @error = nil
      end

      private

      def worker = @context.worker

      def start_timeout
        limits = @context.limits
        @started = limits.timeout ? worker.job_deadline(limits.timeout, limits.hard_timeout) : now
        timeout = Timeout.new(worker, limits.timeout, limits.timeout_grace, @started,
                              patience: limits.patience, streaming: limits.timeout_streaming)
        @request.env["pando.timeout"] = @client.timeout = timeout
      end

      def answer
        body = nil
        @status, @fields, body = call_application
        worker.job_failed if @status.to_i >= 500
        unless @client.handed_over?
          @timeout.check
          Response.deliver(@client, @request, @status, @fields, body)
        end
        @whole = true
      ensure
        body.close if body.respond_to?(:close)
      end

      # A process that the application forked must not come back as a second worker.
      def call_application
        @context.app.call(@request.env)
      ensure
        end_stray if @context.stray?
      end

      def end_stray
        Events.emit("orphan.exited", pid: Process.pid, parent: @context.pid,
                                      reason: "it was forked in a request and came back from it: let it end by exit!")
        exit!(1)
      end

      # What the application makes of its timeout is told with that.
      def came_to_nothing(error)
        @error = error
        worker.leave("out of memory") if error.is_a?(NoMemoryError)
        unless @timeout&.exceeded?
          error.is_a?(Refused) ? refused(error) : failed(error)
        end
        raise error if error.is_a?(SystemExit) || error.is_a?(SignalException)
      end

      def failed(error)
        worker.job_failed
        emit("request.failed", error)
        answer_with(500)
      end

      # The client's fault, found out while the application read a streamed body.
      def refused(refused)
        Events.emit("request.refused", slot: worker.slot, generation: worker.generation, pid: Process.pid,
                                       status: refused.status, reason: refused.message, remote: @client.remote,
                                       method: @request.verb, path: @request.path)
        answer_with(refused.status)
      end

      # The state of the application is unknown from here on.
      def timed_out(error)
        @error = error
        worker.job_failed
        emit("request.timed_out", error, ForkSafety::Audit::Sites.application_line(error.backtrace))
        answer_with(504)
        worker.run_hook(:after_worker_timeout, error)
      ensure
        worker.leave("timeout")
      end

      # The application has rescued RequestTimeout. If it has raised something else, or its body was not to be had,
      # nothing is answered yet.
      def tell_of_timeout = timed_out(@timeout.error(@error))

      # Unless it is too late for an answer.
      def answer_with(status)
        return unless @client.unanswered?

        Response.plain(@client, @request, status).deliver
        @status = status
        @fields = nil
        @whole = true
      rescue ClientGone
        nil # nobody is left to tell
      end

      def tell(callback)
        callback.call(@request.env, @status, @fields, @error)
      rescue StandardError => e
        emit("request.failed", e)
      end

      def emit(name, error, location = nil)
        Events.emit(name, slot: worker.slot, generation: worker.generation, pid: Process.pid,
                          method: @request.verb, path: @request.path, seconds: now - @started,
                          queued: @request.env["pando.queue_time"], location: location, error: error)
      end

      def now
        Process.clock_gettime(Process::CLOCK_MONOTONIC)
      end
    end
  end
end
