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

      # A listening socket with its number and flags, as molds and workers know it: behind a reactor without the socket.
      class Listener
        PROXIED = 1
        HELD = 2
        WRITTEN = /\A(\d{1,4})(p?)(h?)\z/

        # @return [Integer] its name for reactor and workers as long as it lives; not its place in the configuration
        attr_reader :number
        attr_reader :socket

        # @return [Listener, nil] nil when malformed
        def self.decode(text, socket)
          match = WRITTEN.match(text) or return
          new(socket, number: match[1].to_i, proxied: !match[2].empty?, held: !match[3].empty?)
        end

        # @param proxied [Boolean] each connection opens with a PROXY header
        # @param held [Boolean] a service manager has it too, and goes on listening, so it is never shut down
        def initialize(socket, number: 0, proxied: false, held: false)
          @socket = socket
          @number = number
          @proxied = proxied
          @held = held
        end

        def proxied? = @proxied
        def held? = @held
        def fileno = socket.fileno
        def local_address = @local_address || socket.local_address

        # @return [Integer] as the reactor expects them (ext/pando/http/reactor.h)
        def flags = (proxied? ? PROXIED : 0) | (held? ? HELD : 0)

        def encode = "#{number}#{"p" if proxied?}#{"h" if held?}"

        # Refuses clients at once, so that they can go elsewhere.
        def refuse
          ListenerSocket.refuse(socket) unless held?
        end

        # In a process that has inherited it.
        def close = socket.close

        # In a process that only needs its address.
        def leave_to_reactor
          @local_address = local_address
          close
          @socket = nil
        end
      end

      # A listening socket as the monitor has it: with its line of the configuration, and the file of a UNIX socket.
      class OwnListener < Listener
        extend Serializable

        serialize number: :integer, proxied: :flag, held: :flag, path: :text, file: :integers

        KINDS = %i[tcp unix abstract systemd].freeze

        # A line that the configuration no longer has, as an upgrade has recorded it.
        Former = Struct.new(:kind, :path, :name, :proxy_protocol) do
          def self.of(record)
            new(record.choice(:kind, KINDS), nil, record.text(:spec), false)
          end

          def tcp? = kind == :tcp
          def backlog = nil
          def mode = nil
          def umask = nil
          def to_s = name
        end

        attr_reader :spec
        # @return [Inherited::Entry, nil] nil: the monitor has opened it
        attr_reader :entry

        # @param options [Hash] see ListenerSocket.open
        # @raise [BootError]
        def self.open(spec, number, **options) = new(ListenerSocket.open(spec, **options), spec, number)

        # After an upgrade.
        def self.taken_up(record, state, specs)
          socket = Socket.for_fd(state.take(record.integer(:descriptor)))
          entry = Inherited::Entry.new(socket, record.text(:entry)) if record.key?(:entry)
          spec = specs.find { |one| one.to_s == record.text(:spec) } || Former.of(record)
          new(socket, spec, 0, entry).take_up(record)
        end

        # @param entry [Inherited::Entry, nil] if given, the socket is not shut down and its file not removed
        def initialize(socket, spec, number, entry = nil)
          super(socket, number: number, proxied: spec.proxy_protocol, held: !entry.nil?)
          @spec = spec
          @name = ListenerSocket.name(socket)
          @entry = entry
          @path = ListenerSocket.real_path(spec) unless entry
          @file = ListenerSocket.file(@path)
        end

        def to_state(state, word)
          state.add(word, descriptor: state.keep(socket), spec: spec.to_s, kind: spec.kind, entry: entry&.name,
                          **serialized_fields)
        end

        # Found out when it is opened: later there may be no room for the thread in which Ruby 3.3 looks up an address.
        # @return [String] with the port that the kernel chose for port 0
        attr_reader :name

        def inherited? = !entry.nil?

        def identity = { listen: name, inherited: (true if inherited?) }.compact

        def for?(spec)
          return entry.for?(spec) if entry
          return false unless spec.to_s == self.spec.to_s || (spec.tcp? && ListenerSocket.at?(socket, spec))

          @file == ListenerSocket.file(ListenerSocket.real_path(spec)) # a link on its path may lead elsewhere by now
        end

        def as(spec) = Listener.new(socket, number: number, proxied: spec.proxy_protocol, held: held?)

        # The same address is wanted with other options.
        # @return [Boolean] whether the processes that accept from it must be told
        # @raise [SystemCallError] the kernel refuses
        def adopt(spec)
          before = flags
          ListenerSocket.adjust(socket, @spec, spec) unless entry
          @proxied = spec.proxy_protocol
          @spec = spec
          before != flags
        end

        # Removes its file, so that no new client finds it.
        def hide
          ListenerSocket.unlink(@path, @file) unless held?
          @file = nil
        end

        def close
          hide
          super
        end
      end
    end
  end
end
