# frozen_string_literal: true

require "io/nonblock"
require "pando/config"
require "pando/http/connection"
require "pando/http/environment"
require "pando/http/limits"
require "pando/http/request_reader"
require "pando/http/socket_client"
require "pando/http/worker_context"
require "socket"

module Pando
  module HTTP
    # Serves an application from threads of the calling process: a thread for each connection, with one request. For
    # tests, whose application lives in the test process. There is no worker, deadline or restart.
    #
    # @api private
    class ThreadServer
      # Replaces SoftTimeout, whose signal reaches the main thread only.
      class NoTimeout
        def during(_timeout) = yield
      end

      # @param app [#call] the Rack application
      # @param host [String] to listen on
      # @param port [Integer]
      def initialize(app, host, port)
        @app = app
        @listener = TCPServer.new(host, port)
        @limits = Limits.new(Config.load(["-e", "test"], env: {}, file: false))
      end

      # Serves until its thread is killed or the process ends.
      # @return [void]
      def run
        environment = Environment.new(@listener)
        loop { serve(@listener.accept, environment) }
      ensure
        @listener.close
      end

      private

      def serve(socket, environment)
        remote = socket.remote_address.ip_address
        socket.nonblock = true
        client = SocketClient.new(Sys.disown(socket), @limits.write_timeout, remote)
        Thread.new do
          Thread.current.report_on_exception = false # what the app raises is answered, and in the event
          Connection.new(context).serve(client, environment)
        end
      rescue SystemCallError
        socket.close # the client has gone
      end

      def context
        WorkerContext.new(@app, NoWorker, NoWorker, @limits, SocketReader.new(@limits), NoTimeout.new, Process.pid,
                          Sys.forks)
      end
    end
  end
end
