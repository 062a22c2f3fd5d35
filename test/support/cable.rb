# frozen_string_literal: true

require "socket"

module Support
  # The line between clients and a server on this machine. A test can cut and restore it: then neither side can reach
  # the other. Threads of the test carry the bytes.
  class Cable
    # @yieldreturn [Socket] a connection to the server
    # @param listen [#call] opens the listener for the clients
    def initialize(listen, &connect)
      @listen = listen
      @connect = connect
      @lock = Mutex.new
      @sockets = []
      mend
    end

    def mend
      @listener = @listen.call
      @acceptor = Thread.new(@listener) { |listener| loop { carry(listener.accept) } }
      @acceptor.report_on_exception = false # it ends with its listener
    end

    def cut
      @acceptor.kill.join
      @listener.close
      @lock.synchronize { @sockets.slice!(0..) }.each { |socket| end_of(socket) }
    end
    alias close cut

    private

    def carry(client)
      server = @connect.call
      @lock.synchronize { @sockets.push(client, server) }
      [[client, server], [server, client]].each { |from, to| Thread.new { pass(from, to) } }
    rescue SystemCallError
      client.close
    end

    def pass(from, to)
      IO.copy_stream(from, to)
    rescue SystemCallError, IOError
      nil
    ensure
      [from, to].each { |socket| end_of(socket) }
    end

    def end_of(socket)
      socket.shutdown unless socket.closed?
      socket.close
    rescue SystemCallError, IOError
      nil
    end
  end
end
