# frozen_string_literal: true

require "pando/cluster/listening/listener_socket"

module Pando
  module Cluster
    module Listening
      # The sockets that a service manager has opened for the server (sd_listen_fds(3)), until a line of the
      # configuration claims them. They belong to the service manager: the server neither shuts them down nor removes
      # their files. The variables about them are not for children, and are removed. Owned by the monitor.
      class Inherited
        FIRST = 3
        MOST = 100
        VARIABLES = %w[LISTEN_FDS LISTEN_PID LISTEN_FDNAMES LISTEN_PIDFDID].freeze

        # A socket and the name that the service manager has for it (FileDescriptorName=).
        Entry = Struct.new(:socket, :name) do
          def to_s = ListenerSocket.name(socket)

          # @param spec [#kind, #host, #port, #path] a line of kind systemd asks for all, or for all of one name
          def for?(spec)
            return ListenerSocket.at?(socket, spec) unless spec.kind == :systemd

            spec.path.nil? || spec.path == name
          end
        end

        # @param environment [ENV, Hash] loses the variables about them
        def self.from(environment)
          count, pid, names = VARIABLES.map { |name| environment.delete(name) }
          return none unless pid.to_i == Process.pid && count.to_i.between?(1, MOST)

          names = names.to_s.split(":", -1)
          new((0...count.to_i).filter_map { |place| entry(FIRST + place, names[place].to_s) })
        end

        def self.none = new([])

        # After an upgrade.
        def self.taken_up(state, environment)
          VARIABLES.each { |name| environment.delete(name) }
          entries = state.all("inherited").map do |record|
            Entry.new(Socket.for_fd(state.take(record.integer(:descriptor))), record.text(:name))
          end
          new(entries, any: entries.any? || state.all("listener").any? { |record| record.key?(:entry) })
        end

        def self.entry(descriptor, name)
          socket = ListenerSocket.prepare(Socket.for_fd(descriptor))
          return Entry.new(socket, name) if ListenerSocket.listens?(socket)

          Events.emit("listener.unused", listen: "descriptor #{descriptor}", name: name,
                                         reason: "it is no stream socket that listens")
          socket.close
          nil
        rescue SystemCallError => e # no socket at all: it may belong to any code
          Events.emit("listener.unused", listen: "descriptor #{descriptor}", name: name, reason: e.message)
          nil
        end
        private_class_method :entry

        # @param any [Boolean] whether there were any at the start
        def initialize(entries, any: entries.any?)
          @entries = entries
          @any = any
        end

        def to_state(state)
          @entries.each { |entry| state.add("inherited", descriptor: state.keep(entry.socket), name: entry.name) }
        end

        def any? = @any

        # @return [Array<Entry>] those that it asks for; they belong to the caller now
        def take(spec)
          taken = @entries.select { |entry| entry.for?(spec) }
          @entries -= taken
          taken
        end

        def put_back(entry) = @entries.push(entry)

        # Reports those that no line asks for, since clients that connect there are not served.
        def tell_unused
          @entries.each do |entry|
            Events.emit("listener.unused", listen: entry.to_s, name: entry.name,
                                           reason: "the service manager opened it, but no `listen` line is about it")
          end
        end

        def close = @entries.each { |entry| entry.socket.close }
      end
    end
  end
end
