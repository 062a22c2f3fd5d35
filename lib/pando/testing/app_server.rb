# frozen_string_literal: true

require "socket"

module Pando
  module Testing
    # The app under test as `Capybara.server = :pando` serves it, from threads of the test process. No child has these
    # threads. So a refork pauses all servers, and they go on in the process that runs the next test: all processes have
    # the listeners open, and only that one accepts. Owned by Capybara's thread, and paused by the main thread.
    class AppServer
      @all = []

      class << self
        # Serves until the calling thread ends. After a refork Capybara may start a server again that is there already.
        def run(app, host, port)
          server = @all.find { |one| one.at?(host, port) && one.ours? } || new(host, port).tap { |one| @all += [one] }
          server.run(app)
        end

        # @return [Array<IO>]
        def listeners = @all.map(&:listener)
        # @return [Array<Thread>] that accept
        def threads = @all.filter_map(&:thread)

        def pause = @all.each(&:pause)
        def resume = @all.each(&:resume)

        # The turn of a process that lives beside another one, which needs the ports of the servers that Capybara starts
        # meanwhile, whatever servers they are.
        #
        # @yield while all of them serve
        def in_turn
          before = ports
          resume
          yield
        ensure
          pause
          free(ports - before)
        end

        # @api private
        def forget(server) = @all -= [server]

        private

        def ports = defined?(::Capybara::Server) ? ::Capybara::Server.ports.values : []

        def free(ports)
          ObjectSpace.each_object(TCPServer) do |listener|
            listener.close if !listener.closed? && ports.include?(listener.local_address.ip_port)
          end
        end
      end

      attr_reader :listener
      # The one that accepts; nil: the server is paused.
      attr_reader :thread

      def initialize(host, port)
        @place = [host, port]
        @listener = TCPServer.new(host, port)
        @paused = false
      end

      def at?(*place) = place == @place

      # Not after a fork that was no refork, as for Rails' parallelize: the parent goes on accepting.
      def ours? = @paused || @pid == Process.pid

      # In place of the thread that has served so far.
      def run(app)
        pause
        @paused = false
        @app = app
        @thread = Thread.current
        @pid = Process.pid
        serve
      end

      # Ends its threads, and the connections with them.
      def pause
        thread = @thread or return
        @thread = nil
        @paused = thread.alive? # else this process has only inherited the listener: another one serves there
        thread.kill.join
      end

      def resume
        return unless @paused

        @paused = false
        @pid = Process.pid
        @thread = Thread.new { serve }
      end

      private

      # The server closes the listeners that it was given.
      def serve
        HTTP::ThreadServer.new(@app, [@listener.dup]).run
      ensure
        close if @thread.equal?(Thread.current)
      end

      def close
        @listener.close
        self.class.forget(self)
      end
    end
  end
end
