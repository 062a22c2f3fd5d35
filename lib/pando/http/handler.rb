# frozen_string_literal: true

require "pando/fork_safety/libraries"
require "pando/fork_safety/queued_work"
require "pando/http/connection"
require "pando/http/environment"
require "pando/http/limits"
require "pando/http/request_reader"
require "pando/http/self_test"
require "pando/http/slow_log"
require "pando/http/socket_client"
require "pando/http/trusted_proxies"
require "pando/refork/collector"
require "pando/sys"

module Pando
  module HTTP
    # The work of an HTTP worker, as Cluster::Worker wants it: {DirectHandler} accepts connections itself,
    # {ReactorHandler} takes requests from the reactor. This class is what both have in common. Made in the mold, and
    # started in each worker. Each of them has
    #
    #   start(worker)               in the new worker, before it reports ready
    #   sources, ready(source)      what to watch, and in which manner (Sys::Poller); it has something to read
    #   idle                        called now and then without an event: a wake-up may have been lost
    #   pulse                       called before it waits: seconds that it may wait at most; nil: as long as it likes
    #   step_back                   the other workers get requests before this one
    #   app=(app)                   the application from the next request on
    #   resume                      the worker was about to leave, and goes on
    #   serve_out(listener, deadline)  in direct mode: a reload has taken out this listener; serve all that wait there
    #   stop(deadline, by)          before the worker leaves. With a deadline the server ends: serve all that waits, but
    #                               begin nothing after it. `by`: when the monitor stops waiting. Monotonic seconds
    #   failure                     an exception for which the worker leaves, and which it raises at the end; or nil
    #
    # and #rest?, #patience, #go_on, #abandon, #quiet, #drained? and #try_out, which are described below.
    #
    # Here is also when a worker can be forked: between two requests. Clients of connections that the application has
    # taken over are told to connect again elsewhere, and the fork waits a little for them. It also waits for a moment
    # in which no job runs in the background, because a job's thread may hold a lock that would stay locked in the
    # child. The jobs stay with this process, so a busy queue delays the fork but never prevents it. Requests are
    # served meanwhile.
    class Handler
      # Between two looks at the worker's link: so many requests, and none begins after so many seconds.
      BUDGET_REQUESTS = 16
      BUDGET_SECONDS = 0.01
      # Seconds to wait for a moment without background jobs.
      REST_TIMEOUT = 2.0
      # Seconds of these that clients have to close their connections.
      GOODBYE = 1.0
      # Seconds between two counts of the connections.
      COUNT_INTERVAL = 0.25

      def initialize(app, listeners, config, self_test: config.self_test)
        @app = app
        @listeners = listeners
        @limits = Limits.new(config)
        @proxies = TrustedProxies.of(config.trusted_proxies)
        @self_test = self_test
        @slow_terms = SlowEntry::Terms.of(config)
        @safe_paths = config.rollout_safe_paths
        @collector = Refork::Collector.for(config)
      end

      # Called again and again before a fork.
      def rest?
        @rest_by ||= Sys.now + REST_TIMEOUT
        told = told_goodbye?
        Sys.now >= @rest_by || (told && !ForkSafety::QueuedWork.pending?)
      end

      # @return [Float] seconds after which a fork is given up if {#rest?} is still false: more than REST_TIMEOUT, since
      #   requests come between
      def patience = REST_TIMEOUT * 5

      # The worker has been forked, or will not be, and serves on.
      def go_on
        @rest_by = nil
      end

      # In a forked child: nothing here is its own.
      def abandon = nil

      # Garbage is collected between requests, so the worker need not wake up for it.
      def pulse = nil

      # Nothing to do: the clients decide when requests come. `pando drain` takes the server out of rotation.
      def quiet = nil

      # Called again and again in a worker that is to leave last: it takes no further request, and keeps what it has.
      def drained? = !connected?

      # With one thread, an exception ends the worker where it is raised.
      def failure = nil

      # In a canary that gets no requests: requests the paths that the configuration calls safe.
      def try_out
        SelfTest.replay(@safe_paths, worker) { |descriptor| serve_self_test(descriptor) }
      end

      private

      attr_reader :worker

      def serve_self_test(descriptor)
        @connection.serve(SocketClient.new(descriptor, @limits.write_timeout), @environments.each_value.first)
      end

      # For requests on the main thread.
      def soft_timeout(worker) = SoftTimeout.new(worker, SlowLog.for(@slow_terms, worker, worker))

      def run_self_test
        SelfTest.run(@self_test, worker) { |descriptor| serve_self_test(descriptor) }
      end

      def serve_within_budget
        limit = coarse_now + BUDGET_SECONDS
        left = BUDGET_REQUESTS
        left -= 1 while left.positive? && !worker.leaving? && yield && coarse_now < limit
      end

      # To the few milliseconds of a clock that costs next to nothing.
      def coarse_now = Process.clock_gettime(Process::CLOCK_MONOTONIC_COARSE)

      # @return [Boolean] whether the application has taken over connections that are still open
      def connected?
        count_connections
        ForkSafety.connections.positive?
      end

      # @return [Boolean] whether no client would have to connect again, or all have had their time
      def told_goodbye?
        return true if ForkSafety.connections.zero?

        ForkSafety::Libraries.say_goodbye || Sys.now >= @rest_by - REST_TIMEOUT + GOODBYE
      end

      # Tells the monitor, which prefers a worker without connections as the source of a mold.
      def count_connections
        now = coarse_now
        return if @counted_at && now - @counted_at < COUNT_INTERVAL

        @counted_at = now
        tell_connections
      end

      def tell_connections
        count = ForkSafety.connections
        worker.connections = count unless count == @connections
        @connections = count
      end
    end
  end
end
