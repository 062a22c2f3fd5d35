# frozen_string_literal: true

require "pando/events"
require "pando/http/acceptor"
require "pando/http/at_rest"
require "pando/http/serve_budget"
require "pando/http/client"
require "pando/http/connection"
require "pando/http/detached_client"
require "pando/http/environment"
require "pando/http/worker_context"
require "pando/http/limits"
require "pando/http/request_reader"
require "pando/http/self_test"
require "pando/http/soft_timeout"
require "pando/http/trusted_proxies"
require "pando/refork/collector"
require "pando/refork/major_gc_deferral"

module Pando
  module HTTP
    # What an HTTP worker does in direct mode, as Cluster::Worker wants it: {#sources}
    # to watch, {#ready} when one of them has a connection, one request at a time.
    # Made in the mold, started in each worker. {ReactorHandler} does it with a reactor.
    class DirectHandler
      include AtRest

      # @param app [#call] the Rack application
      # @param listeners [Array<Cluster::Listening::Listener>] non-blocking, shared with other workers
      # @param config [Config]
      # @param self_test [String, nil] see SelfTest
      def initialize(app, listeners, config, self_test: config.self_test)
        @app = app
        @listeners = listeners
        @limits = Limits.new(config)
        @proxies = TrustedProxies.of(config.trusted_proxies)
        @acceptor = Acceptor.new
        @self_test = self_test
        @safe_paths = config.rollout_safe_paths
        @collector = Refork::Collector.new(config.gc_between_requests, Refork::MajorGCDeferral.new(config.gc_major))
      end

      # In the new worker, before it reports ready.
      #
      # @param worker [Cluster::Worker]
      # @return [void]
      def start(worker)
        # The monitor's death is heard in the midst of a request, too.
        Sys.shut_when_orphaned(@listeners.reject(&:held?).map(&:fileno))
        @context = WorkerContext.for(worker, @app, @limits, RequestReader.new(@limits))
        @connection = Connection.new(@context)
        @environments = @listeners.to_h { |each| [each, Environment.new(each, proxies: @proxies)] }.compare_by_identity
        SelfTest.run(@self_test, worker) { |descriptor| serve_ourselves(descriptor) }
        @collector.start(worker)
      end

      # This one is to be given connections first, when the others have stepped back.
      #
      # @return [void]
      def step_forward; end

      # Others are to be given connections first; the worker sees to the order of the {#sources}.
      #
      # @return [void]
      def step_back; end

      # From the next request on.
      #
      # @param app [#call]
      def app=(app)
        @context.app = app
      end

      # @return [Array<Array(Cluster::Listening::Listener, Symbol)>] to watch, and in which manner (Sys::Poller)
      def sources
        @listeners.map { |listener| [listener, :exclusive] }
      end

      # Somebody connected: serve him, unless another worker was faster.
      #
      # @param listener [Cluster::Listening::Listener] one of {#sources}
      # @return [void]
      def ready(listener)
        ServeBudget.serve(@context.worker) { serve(listener) }
        count_connections(@context.worker)
        @collector.between { false } # who waits at the listeners, it does not know
      end

      # Now and then: a worker that was woken but died first has taken the wake-up
      # along, and the connection still waits.
      #
      # @return [void]
      def idle
        @listeners.each { |listener| ready(listener) }
      end

      # The worker wanted to leave, and goes on.
      #
      # @return [void]
      def resume = idle

      # In a canary that no client asks for anything: requests the paths that the application calls safe.
      #
      # @return [String] see SelfTest.replay
      # @raise [SelfTest::Failed]
      def try_out
        SelfTest.replay(@safe_paths, @context.worker) { |descriptor| serve_ourselves(descriptor) }
      end

      # Before the worker leaves, for the same reason: this one may have been woken.
      #
      # @param deadline [Float, nil] the server ends: serve all that waits, but
      #   begin nothing after this moment (monotonic seconds)
      # @param _by [Float, nil] when whoever told us to go ends its patience; no request is cut short for it
      # @return [void]
      def stop(deadline = nil, _by = nil)
        loop do
          served = @listeners.map { |listener| serve(listener) }.any?
          break unless served && deadline && Sys.now < deadline
        end
        # At once, and not when the monitor has seen us dead: who connected meanwhile would be cut off.
        @listeners.each(&:refuse) if deadline
      end

      # Nobody listens there any more: serve all that waits, and let nobody in who comes later.
      #
      # @param listener [Cluster::Listening::Listener] none of {#sources}
      # @param deadline [Float] begin nothing after this moment (monotonic seconds)
      # @return [void]
      def serve_out(listener, deadline)
        @environments[listener] = Environment.new(listener, proxies: @proxies)
        serve_all(listener, deadline)
        listener.refuse
        serve_all(listener, deadline) # of a UNIX socket, who was in the queue is there still
      ensure
        @environments.delete(listener)
      end

      private

      def serve_ourselves(descriptor)
        @connection.serve(Client.new(descriptor, @limits.write_timeout), @environments.each_value.first)
      end

      def serve_all(listener, deadline)
        nil while Sys.now < deadline && serve(listener)
      end

      def serve(listener)
        accepted = @acceptor.accept(listener)
        return false unless accepted

        descriptor, remote = accepted
        client = Client.new(descriptor, @limits.write_timeout, remote, listener.proxied?)
        @connection.serve(client, @environments[listener])
        true
      end
    end
  end
end
