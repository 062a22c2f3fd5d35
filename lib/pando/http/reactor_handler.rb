# frozen_string_literal: true

require "pando/http/at_rest"
require "pando/http/serve_budget"
require "pando/http/client"
require "pando/http/connection"
require "pando/http/detached_client"
require "pando/http/environment"
require "pando/http/forwarded_client"
require "pando/http/worker_context"
require "pando/http/lane_client"
require "pando/http/lane_link"
require "pando/http/limits"
require "pando/http/queued_reader"
require "pando/http/request_reader"
require "pando/http/self_test"
require "pando/http/soft_timeout"
require "pando/http/trusted_proxies"
require "pando/refork/collector"
require "pando/refork/major_gc_deferral"

module Pando
  module HTTP
    # What an HTTP worker does behind the reactor, as Cluster::Worker wants it: it
    # takes complete requests from its lane while there are any, and sleeps on the
    # lane's eventfd when there are none. Made in the mold, started
    # in each worker; {DirectHandler} is the same for direct mode.
    class ReactorHandler
      include AtRest

      # Seconds between two looks whether others' requests still wait, in a worker that leaves.
      LOOK = 0.05

      # @param app [#call] the Rack application
      # @param listeners [Array<Cluster::Listening::Listener>] that the reactor accepts from
      # @param config [Config]
      # @param channel [Channel]
      # @param self_test [String, nil] see SelfTest
      def initialize(app, listeners, config, channel, self_test: config.self_test)
        @app = app
        @listeners = listeners
        @limits = Limits.new(config)
        @proxies = TrustedProxies.of(config.trusted_proxies)
        @channel = channel
        @self_test = self_test
        @safe_paths = config.rollout_safe_paths
        @collector = Refork::Collector.new(config.gc_between_requests, Refork::MajorGCDeferral.new(config.gc_major))
      end

      # In the new worker, before it reports ready.
      #
      # @param worker [Cluster::Worker] who also answers lane_number, lane_memory,
      #   lane_eventfd (IO), lane_socket (UNIXSocket) and reactor_eventfd (IO)
      # @return [void]
      def start(worker)
        take_lane(worker)
        @reader = QueuedReader.new(@limits, @lane)
        @context = WorkerContext.for(worker, @app, @limits, @reader)
        @connection = Connection.new(@context)
        @direct_kit = @context.dup.tap { |context| context.reader = RequestReader.new(@limits) }
        @direct_connection = Connection.new(@direct_kit)
        @environments = @listeners.to_h { |each| [each.number, Environment.new(each, proxies: @proxies)] }
        SelfTest.run(@self_test, worker) { |descriptor| serve_ourselves(descriptor) }
        @collector.start(worker)
        rest
      end

      # This one is to be woken first, until it steps back.
      #
      # @return [void]
      def step_forward = @lane.step_forward

      # Others are to be woken first.
      #
      # @return [void]
      def step_back = @lane.step_back

      # From the next request on.
      #
      # @param app [#call]
      def app=(app)
        @context.app = @direct_kit.app = app
      end

      # @return [Array<Array(IO, Symbol)>] to watch, and in which manner (Sys::Poller)
      def sources
        [[@eventfd, :edge]]
      end

      # The reactor has woken this worker: serve what waits, but not for ever, since
      # its link may have orders.
      #
      # @return [void]
      def ready(_eventfd)
        return if worker.leaving?

        ServeBudget.serve(worker) { serve }
        count_connections(worker)
        @collector.between { !@lane.waiting? }
        rest unless worker.leaving?
      end

      # Now and then, though nobody called: a wake-up may have been lost, or the word that this worker sleeps.
      #
      # @return [void]
      def idle
        return ready(@eventfd) if @lane.offered?

        count_connections(worker)
        rest unless @lane.asleep?
      end

      # The worker wanted to leave, and goes on: what has come meanwhile is served.
      #
      # @return [void]
      def resume = ready(@eventfd)

      # In a canary that no client asks for anything: requests the paths that the application calls safe.
      #
      # @return [String] see SelfTest.replay
      # @raise [SelfTest::Failed]
      def try_out
        @lane.close # the reactor must not hand it a request meanwhile
        SelfTest.replay(@safe_paths, worker) { |descriptor| serve_ourselves(descriptor) }
      ensure
        ready(@eventfd)
      end

      # Before the worker leaves. What waits is the others', and so is what this one was offered.
      #
      # @param deadline [Float, nil] the server ends: serve all that waits, but
      #   begin nothing after this moment (monotonic seconds)
      # @param _by [Float, nil] when whoever told us to go ends its patience; no request is cut short for it
      # @return [void]
      def stop(deadline = nil, _by = nil)
        nil while deadline && Sys.now < deadline && (serve || wait_for_more(deadline))
        @lane.close
      end

      private

      def worker = @context.worker

      def take_lane(worker)
        @eventfd = worker.lane_eventfd
        @reactor_eventfd = worker.reactor_eventfd # kept from the garbage collector: the lane knows the numbers only
        @lane = Lane.new(@channel, worker.lane_number, worker.lane_memory, @eventfd, @reactor_eventfd)
        @link = LaneLink.new(@lane, @eventfd, worker.lane_socket)
      end

      # Others' requests wait: the reactor has them for us as soon as it knows that we are free.
      #
      # @return [Boolean] whether there may be one now
      def wait_for_more(deadline)
        return false unless @lane.waiting?
        return true unless @lane.sleep

        Wire.wait_readable(@eventfd.fileno, (deadline - Sys.now).clamp(0, LOOK))
        @lane.drain
        true
      end

      # To sleep until the reactor calls, or at once to the poller if something waits.
      def rest
        @lane.nudge unless @lane.sleep
      end

      # @return [Boolean] whether there was a request
      def serve
        return false unless @reader.take

        client = LaneClient.new(@link, @channel, @limits.write_timeout)
        environment = @environments[@lane.listener] || @environments.each_value.first
        if @lane.streamed?
          serve_streamed(client, environment)
        else
          @connection.serve(client, environment)
        end
        worker.leave("the reactor does not read its lane") if client.stuck?
        true
      end

      def serve_ourselves(descriptor)
        @direct_connection.serve(Client.new(descriptor, @limits.write_timeout), @environments.each_value.first)
      end

      # The body is not here yet: this worker reads it from the client's socket itself.
      def serve_streamed(client, environment)
        direct = client.take_descriptor do |descriptor, received|
          ForwardedClient.new(descriptor, @limits.write_timeout, @reader.buffer + received, @lane, client)
        end
        @direct_connection.serve(direct, environment)
      rescue ClientGone
        client.reset
      end
    end
  end
end
