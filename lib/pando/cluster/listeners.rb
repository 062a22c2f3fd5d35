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

      KINDS = %i[tcp unix abstract].freeze

      # @param specs [Array<#kind, #host, #port, #path, #options>]
      # @raise [BootError] the address is in use, not ours, or not allowed
      def self.open(specs)
        listeners = new([])
        specs.each { |spec| listeners.add(ListenerSocket.open(spec), spec, ListenerSocket.file(spec)) }
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

      # What is known of a socket's address, if the configuration does not name it any more.
      Kept = Struct.new(:kind, :path, :name) do
        def tcp? = kind == :tcp
        def to_s = name
      end

      # @param state [Upgrade::State]
      # @param specs [Array] of the configuration
      def self.taken_up(state, specs)
        listeners = new([])
        state.all("listener").each do |record|
          name = record.text(:name)
          spec = specs.find { |one| one.to_s == name } ||
                 Kept.new(record.choice(:kind, KINDS), record.read(:path, :text), name)
          socket = Socket.for_fd(state.take(record.integer(:descriptor)))
          listeners.add(socket, spec, record.read(:file, :integers))
        end
        listeners
      end

      def self.server_for(fd)
        family = Socket.for_fd(fd).tap { |socket| socket.autoclose = false }.local_address.afamily
        server = (family == Socket::AF_UNIX ? UNIXServer : TCPServer).for_fd(fd)
        server.close_on_exec = true
        server
      end
      private_class_method :server_for

      def initialize(sockets)
        @sockets = sockets
        @specs = []
        @files = []
      end

      # @param file [Array(Integer, Integer), nil] see ListenerSocket.file
      def add(socket, spec, file)
        @sockets.push(socket)
        @specs.push(spec)
        @files.push(file)
      end

      # @param state [Upgrade::State]
      def to_state(state)
        @sockets.zip(@specs, @files) do |socket, spec, file|
          state.add("listener", name: spec.to_s, kind: spec.kind, path: spec.path, descriptor: state.keep(socket),
                                file: file)
        end
      end

      # See .taken_up.
      def from_state(_state) = nil

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
