# frozen_string_literal: true

module Pando
  module Cluster
    # The listening sockets. The monitor opens and owns them for the life of
    # the server; molds and workers inherit them.
    #
    # @api private
    class Listeners
      include Enumerable

      # The kernel's constant, which Ruby's Socket does not name on every platform (tcp(7)).
      TCP_DEFER_ACCEPT = 9

      # @param specs [Array<#kind, #host, #port, #path, #options>]
      # @raise [BootError] the address is in use, not ours, or not allowed
      def self.open(specs)
        listeners = new([], specs)
        specs.each { |spec| listeners.add(ListenerSocket.open(spec)) }
        listeners
      rescue BootError
        listeners.close
        raise
      end

      # Wraps what a mold inherited.
      # @param descriptors [Array<Integer>]
      def self.inherit(descriptors)
        new(descriptors.map { |fd| server_for(fd) })
      end

      def self.server_for(fd)
        family = Socket.for_fd(fd).tap { |socket| socket.autoclose = false }.local_address.afamily
        server = (family == Socket::AF_UNIX ? UNIXServer : TCPServer).for_fd(fd)
        server.close_on_exec = true
        server
      end
      private_class_method :server_for

      def initialize(sockets, specs = [])
        @sockets = sockets
        @specs = specs
        @files = []
      end

      def add(socket)
        @files.push(ListenerSocket.file(@specs[@sockets.size]))
        @sockets.push(socket)
      end

      def each(&block) = @sockets.each(&block)

      # Where we listen, with the port that the kernel chose for port 0.
      # @return [Array<String>]
      def names = @sockets.zip(@specs).map { |socket, spec| ListenerSocket.name(socket, spec) }

      # How many connections have come that nobody has accepted yet.
      # @return [Hash{String => Integer, nil}] by address; nil where the kernel does not tell
      def waiting = names.zip(@sockets).to_h { |name, socket| [name, ListenerSocket.waiting(socket)] }

      # A client that is refused at once can go elsewhere.
      def refuse = each { |socket| ListenerSocket.refuse(socket) }

      # Closes all and removes the files of UNIX sockets that are still ours.
      def close
        @sockets.zip(@specs, @files) { |socket, spec, file| ListenerSocket.close(socket, spec, file) }
        @sockets = []
      end
    end
  end
end

require "pando/cluster/listener_socket"
