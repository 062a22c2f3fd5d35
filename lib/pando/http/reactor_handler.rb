# frozen_string_literal: true

require "pando/http/handler"
require "pando/http/lane_client"
require "pando/native"

module Pando
  module HTTP
    # Serves the requests of one lane, one after another. Owned by a {ReactorHandler}, and used by one thread.
    class LaneServer
      attr_reader :lane
      # @return [IO] by which the reactor wakes the thread
      attr_reader :eventfd
      # @return [Connection] for a client whose socket this worker has
      attr_reader :direct_connection

      # @param descriptors [Cluster::LaneDescriptors]
      # @yieldparam reader [RequestReader] @yieldreturn [Connection] that reads its requests with it
      def initialize(descriptors, channel, environments, worker, limits, &connection)
        @worker = worker
        @limits = limits
        @eventfd = descriptors.eventfd
        @reactor_eventfd = worker.reactor_eventfd # the lane only knows the numbers, and does not keep the IOs
        @lane = Lane.new(channel, descriptors.number, descriptors.memory, @eventfd, @reactor_eventfd)
        @link = LaneLink.new(@lane, @eventfd, descriptors.socket)
        @channel = channel
        @environments = environments
        @reader = LaneReader.new(limits, @lane)
        @connection, @direct_connection = [@reader, SocketReader.new(limits)].map(&connection)
      end

      def app=(app)
        @connection.app = @direct_connection.app = app
      end

      # @return [Boolean] whether there was a request
      def serve
        return false unless @reader.take

        client = @client = LaneClient.new(@link, @channel, @limits.write_timeout)
        environment = @environments[@lane.listener] || @environments.each_value.first
        if @lane.streamed?
          serve_streamed(client, environment)
        else
          @connection.serve(client, environment)
        end
        @worker.leave("the reactor does not read its lane") if client.stuck?
        true
      ensure
        @client = nil # it holds the request, all of whose objects the collection after this would make old
      end

      # From another thread: the response that is being streamed ends with what the application writes next.
      def cut_stream = @client&.cut

      # Sleeps until the reactor wakes this thread; returns at once if a request waits already.
      def wait
        Wire.wait_readable(@eventfd.fileno, nil) if @lane.sleep
        @lane.drain
      end

      private

      # The body has not arrived yet: this worker reads it from the client's socket itself.
      def serve_streamed(client, environment)
        direct = client.take_descriptor do |descriptor, received|
          ForwardedClient.new(descriptor, @limits.write_timeout, @reader.buffer + received, @lane, client)
        end
        @direct_connection.serve(direct, environment)
      rescue ClientGone
        client.reset
      end
    end

    # What an HTTP worker without threads does behind the reactor: it takes complete requests from its lane while there
    # are any, and sleeps on the lane's eventfd when there are none. See {Handler}; {ThreadedHandler} has threads.
    class ReactorHandler < Handler
      # Seconds between two checks in a worker that leaves whether other workers' requests still wait.
      INTERVAL = 0.05

      def initialize(app, listeners, config, channel, self_test: config.self_test)
        super(app, listeners, config, self_test: self_test)
        @channel = channel
      end

      def start(worker)
        prepare_environments
        @worker = worker
        @server = lane_server(worker.lanes.first, worker, soft_timeout(worker).install)
        @connection = @server.direct_connection # for requests of the worker's own
        @lane = @server.lane
        run_self_test
        @collector.start(worker)
        sleep_unless_called
      end

      def step_back = lanes.each(&:step_back)

      def app=(app)
        @server.app = app
      end

      def sources = [[@server.eventfd, :edge]]

      # Serves what waits, but not for ever, because the worker's link may have orders.
      def ready(_eventfd)
        return if worker.leaving?

        serve_within_budget { @server.serve }
        count_connections
        @collector.between { !@lane.waiting? }
        sleep_unless_called unless worker.leaving?
      end

      # Also the message that this worker sleeps may have been lost.
      def idle
        return ready(@server.eventfd) if @lane.offered?

        count_connections
        sleep_unless_called unless @lane.asleep?
      end

      # Serves what has come meanwhile.
      def resume = ready(@server.eventfd)

      # The reactor must not give this worker a request meanwhile.
      def try_out
        @lane.close
        super
      ensure
        ready(@server.eventfd)
      end

      def drained?
        @lane.close
        super
      end

      # Requests that wait go to other workers, also those that were offered to this one. No request is cut short.
      def stop(deadline = nil, _by = nil)
        nil while deadline && Sys.now < deadline && (@server.serve || wait_for_more(deadline))
        @lane.close
      end

      private

      def lane_server(descriptors, record, soft_timeout)
        LaneServer.new(descriptors, @channel, @environments, worker, @limits) do |reader|
          Connection.new(@app, worker, @limits, reader, soft_timeout, record: record)
        end
      end

      # By the number of their listener; one for all lanes of the worker.
      def prepare_environments(**options)
        @environments = @listeners.to_h { |each| [each.number, Environment.new(each, proxies: @proxies, **options)] }
      end

      # If other workers' requests wait, the reactor gives them to this one as soon as it knows that it is free.
      #
      # @return [Boolean] whether there may be one now
      def wait_for_more(deadline)
        return false unless @lane.waiting?
        return true unless @lane.sleep

        Wire.wait_readable(@server.eventfd.fileno, (deadline - Sys.now).clamp(0, INTERVAL))
        @lane.drain
        true
      end

      # Sleeps until the reactor calls; if a request waits already, makes the poller return at once.
      def sleep_unless_called
        @lane.nudge unless @lane.sleep
      end

      # The reactor, too, prefers a worker with few of them.
      def tell_connections
        ever = lanes.sum(&:connections)
        super
        lanes.first.tell_connections(ever, @connections)
      end

      def lanes = [@lane]
    end
  end
end
