# frozen_string_literal: true

require "pando/config"
require "pando/http/connection"
require "pando/http/environment"
require "pando/http/limits"
require "pando/http/request_reader"
require "pando/http/socket_client"
require "socket"

module Pando
  module HTTP
    # Serves an application from threads of the calling process: a thread for each connection, with one request. For
    # tests, whose application lives in the test process, and for the admin process. There is no worker, deadline or
    # restart.
    #
    # A client costs its own connection only. If there are too many, a newcomer replaces the oldest one whose request
    # has not arrived yet; if all of them are being answered, the newcomer is the one that is closed.
    class ThreadServer
      # A connection: its thread, its socket, and whether its request has arrived.
      Served = Struct.new(:thread, :socket, :answering)

      # Seconds without accepting after the kernel had no descriptor or thread.
      PAUSE = 0.1
      # Seconds that threads may take to end with the server.
      PATIENCE = 2.0

      # @param app [#call] the Rack application; finds its listener in `pando.listener`
      # @param limits [Limits, nil] nil: the default settings'
      def initialize(app, listeners, limits: nil, most: 1024)
        @app = app
        @listeners = listeners
        @limits = limits || Limits.new(Config.load(["-e", "test"], env: {}, file: false))
        @most = most
        @served = []
      end

      # Serves until its thread is killed or the process ends.
      def run
        environments = @listeners.to_h { |listener| [listener, Environment.new(listener, multithread: true)] }
        loop do
          IO.select(@listeners).first.each { |listener| accept(listener, environments.fetch(listener)) }
        end
      ensure
        @listeners.each(&:close)
        end_threads
      end

      private

      def accept(listener, environment)
        socket = listener.accept_nonblock(exception: false)
        return if socket == :wait_readable

        room? ? serve(socket, listener, environment) : socket.close
      rescue Errno::EMFILE, Errno::ENFILE, Errno::ENOMEM, Errno::ENOBUFS, ThreadError
        socket.close if socket.respond_to?(:close)
        make_room
        sleep(PAUSE)
      rescue SystemCallError
        socket.close if socket.respond_to?(:close) # the client has gone
      end

      def room?
        @served.select! { |one| one.thread.alive? }
        @served.size < @most || make_room
      end

      # @return [Boolean] whether there was a connection without a request
      def make_room
        oldest = @served.find { |one| !one.answering } or return false
        finish(oldest, PATIENCE)
        @served.delete(oldest)
        true
      end

      def serve(socket, listener, environment)
        remote = socket.remote_address.then { |address| (address.ipv6_to_ipv4 || address).ip_address if address.ip? }
        served = Served.new(nil, socket, false)
        connection = connection(served, listener)
        served.thread = Thread.new { converse(socket, remote, connection, environment) }
        @served << served
      end

      def converse(socket, remote, connection, environment)
        Thread.current.report_on_exception = false # what the app raises is answered, and in the event
        Thread.handle_interrupt(Object => :never) do
          client = SocketClient.new(Sys.disown(socket), @limits.write_timeout, remote)
          Thread.handle_interrupt(Object => :immediate) { connection.serve(client, environment) }
        ensure
          client&.reset # if the thread was killed before its work began
        end
      end

      # A thread that is killed at its very beginning leaves the socket open.
      def finish(served, patience)
        served.thread.kill.join(patience)
        served.socket.close
      end

      def connection(served, listener)
        app = lambda do |env|
          served.answering = true
          env["pando.listener"] = listener
          @app.call(env)
        end
        # The SoftTimeout is not installed: its signal would reach the main thread only.
        Connection.new(app, NoWorker, @limits, SocketReader.new(@limits), SoftTimeout.new(NoWorker))
      end

      def end_threads
        @served.each { |one| one.thread.kill }
        deadline = Sys.now + PATIENCE
        @served.each { |one| finish(one, [deadline - Sys.now, 0].max) }
      end
    end
  end
end
