# frozen_string_literal: true

require "pando/events"
require "pando/http/handler"
require "pando/native"

module Pando
  module HTTP
    # What an HTTP worker does in direct mode: it accepts connections from the listeners, which it shares with other
    # workers, and serves one request of each. See {Handler}.
    class DirectHandler < Handler
      # accept(2): the connection died in the queue, or an error of the network is pending on the new socket; or
      # (EINVAL) the server stops and accepts no more.
      LOST = [Errno::ECONNABORTED, Errno::EINVAL, Errno::EPROTO, Errno::EINTR, Errno::EPERM, Errno::ENETDOWN, Errno::ENOPROTOOPT,
              Errno::EHOSTDOWN, Errno::ENONET, Errno::EHOSTUNREACH, Errno::EOPNOTSUPP, Errno::ENETUNREACH].freeze
      # No descriptor or no memory: the connection stays queued, so that the worker would spin without a pause.
      SCARCE = [Errno::EMFILE, Errno::ENFILE, Errno::ENOBUFS, Errno::ENOMEM].freeze
      # Seconds.
      PAUSE = 0.1

      def start(worker)
        @worker = worker
        # So that this worker notices the monitor's death during a request, too.
        Sys.shut_when_orphaned(@listeners.reject(&:held?).map(&:fileno))
        @connection = Connection.new(@app, worker, @limits, SocketReader.new(@limits), soft_timeout(worker).install)
        @environments = @listeners.to_h { |each| [each, Environment.new(each, proxies: @proxies)] }.compare_by_identity
        run_self_test
        @collector.start(worker)
      end

      # The kernel's order of the {#sources}, to which the worker sees, decides which worker gets a connection.
      def step_back; end

      def app=(app)
        @connection.app = app
      end

      def sources = @listeners.map { |listener| [listener, :exclusive] }

      # Serves a client that has connected, unless another worker was faster.
      def ready(listener)
        serve_within_budget { serve(listener) }
        count_connections
        @collector.between { false } # it cannot see whether clients wait at the listeners
      end

      # If a worker was woken up and died, its connection still waits.
      def idle = @listeners.each { |listener| ready(listener) }
      def resume = idle

      # This worker may have been woken up for a connection. No request is cut short.
      def stop(deadline = nil, _by = nil)
        loop do
          served = @listeners.map { |listener| serve(listener) }.any?
          break unless served && deadline && Sys.now < deadline
        end
        # At once, and not when the monitor sees this process end: a client that connects meanwhile would be cut off.
        @listeners.each(&:refuse) if deadline
      end

      # The server does not listen there any more: serves all clients that wait, and accepts no more.
      def serve_out(listener, deadline)
        @environments[listener] = Environment.new(listener, proxies: @proxies)
        serve_all(listener, deadline)
        listener.refuse
        serve_all(listener, deadline) # the queue of a UNIX socket is still there
      ensure
        @environments.delete(listener)
      end

      # @return [Array(Integer, String), nil] a descriptor and the client's address; nil: no client waits
      def accept(listener)
        Wire.accept(listener.fileno)
      rescue *LOST
        nil
      rescue *SCARCE => e
        Events.emit("accept.failed", pid: Process.pid, reason: e.message)
        sleep PAUSE
        nil
      end

      private

      def serve(listener)
        descriptor, remote = accept(listener)
        return false unless descriptor

        client = SocketClient.new(descriptor, @limits.write_timeout, remote, listener.proxied?)
        @connection.serve(client, @environments[listener])
        true
      end

      def serve_all(listener, deadline)
        nil while Sys.now < deadline && serve(listener)
      end
    end
  end
end
