# frozen_string_literal: true

require "pando/cluster/listening/listener"

module Pando
  module Cluster
    module Listening
      # The listening sockets. The monitor opens and owns them for the life of the server, or until a reload removes
      # one; molds and workers inherit them. AdminSupervisor and Control have theirs in objects of their own.
      class Listeners
        include Brief
        include Enumerable

        # As many as a cold mold can inherit beside its other descriptors.
        MOST = 100
        # The reactor has as many places (ext/pando/http/reactor.h).
        NUMBERS = 1024

        # A change to another configuration: its lines, the listeners of each, and those among them that are new.
        Change = Struct.new(:specs, :lines, :fresh) do
          def listeners = lines.values.flatten

          # "::" covers IPv4 as well, unless another line has the same port there.
          def dual?(spec)
            specs.none? { |one| one.tcp? && one.port == spec.port && !one.host.include?(":") }
          end

          # @return [Array<Listener>] with the options of that configuration
          def views = lines.flat_map { |spec, listeners| listeners.map { |listener| listener.as(spec) } }
        end

        # @return [Array<OwnListener>] that a reload has removed; clients that wait there are still to be served
        attr_reader :leaving

        # @param specs [Array<Config::Listen>] or objects with the same methods
        # @raise [BootError] the address is in use, not local, or not allowed
        def self.open(specs, inherited = Inherited.none)
          listeners = new(inherited)
          listeners.adopt(listeners.prepare(specs))
          inherited.tell_unused
          listeners
        end

        def initialize(inherited = Inherited.none)
          @inherited = inherited
          @listeners = []
          @leaving = []
          @number = -1
        end

        def each(&block) = @listeners.each(&block)

        # @param word [String] the name of their records
        def to_state(state, word = "listener")
          each { |listener| listener.to_state(state, word) }
          state.add("#{word}_number", last: @number) unless @number.negative?
          @inherited.to_state(state)
        end

        # After an upgrade. Changes of the configuration since then need a reload.
        def take_up(state, specs, word = "listener")
          @listeners = state.all(word).map { |record| OwnListener.taken_up(record, state, specs) }
          @number = state.any("#{word}_number")&.integer(:last) || map(&:number).max || @number
          self
        end

        # They are restored while the monitor is built, before State::OWNERS are: see #take_up.
        def from_state(_state) = nil

        # Opens what is missing, and changes nothing yet.
        # @raise [BootError] see .open
        def prepare(specs)
          raise BootError, "a server has at most #{MOST} listeners" if specs.size > MOST

          change = Change.new(specs, {}, [])
          addressed, any = specs.partition { |spec| spec.kind != :systemd }
          [*addressed, *any].each { |spec| change.lines[spec] = listeners_for(spec, change) }
          change
        rescue BootError
          give_up(change) if change
          raise
        end

        # @return [Array<OwnListener>] those that are new or have other #flags
        def adopt(change)
          gone = @listeners - change.listeners
          @listeners = change.listeners
          gone.each(&:hide)
          @leaving.concat(gone)
          changed = change.lines.flat_map { |spec, listeners| listeners.select { |listener| adjust(listener, spec) } }
          change.fresh | changed
        end

        def give_up(change) = put_away(change.fresh)

        # No client waits there any more.
        def forget(listeners)
          @leaving -= listeners
          put_away(listeners)
        end

        # The addresses, with the port that the kernel chose for port 0.
        def names = map(&:name)

        # The numbers of connections that are not accepted yet.
        # @return [Hash{String => Integer, nil}] by address; nil: the kernel does not tell
        def waiting = to_h { |listener| [listener.name, ListenerSocket.waiting(listener.socket)] }

        def refuse = each(&:refuse)

        # Closes all, and removes the files of UNIX sockets that still belong to them.
        def close
          [*@listeners, *@leaving].each(&:close)
          @inherited.close
          @listeners = []
          @leaving = []
        end

        private

        def listeners_for(spec, change)
          known = select { |listener| listener.for?(spec) } - change.listeners
          known.each { |listener| check_families(listener, spec, change) }
          return known if known.any? && spec.kind != :systemd

          known += @inherited.take(spec).map do |entry|
            fresh(OwnListener.new(entry.socket, spec, number(change), entry), change)
          end
          return known if known.any?
          raise BootError, "cannot listen on #{spec}: it has handed us no such socket" if spec.kind == :systemd

          [fresh(opened(spec, change), change)]
        end

        # A socket at "::" covers IPv4 as well or does not, from its opening to its end.
        def check_families(listener, spec, change)
          address = listener.local_address
          return if listener.inherited? || !(address.ipv6? && ListenerSocket.any?(address))

          wanted = spec.host.include?(":") && change.dual?(spec)
          return if ListenerSocket.both?(listener.socket) == wanted

          raise BootError, "cannot listen on #{spec}: #{listener.name} is open for " \
                           "#{wanted ? "IPv6 only" : "IPv4 as well"}. Restart the server to change that"
        end

        def fresh(listener, change)
          change.fresh.push(listener)
          listener
        end

        def opened(spec, change)
          OwnListener.open(spec, number(change), dual: spec.tcp? && change.dual?(spec))
        rescue BootError => e
          rival = find { |listener| spec.tcp? && listener.spec.tcp? && listener.local_address.ip_port == spec.port }
          raise e unless rival

          raise BootError, "#{e.message}. This server itself listens at #{rival.name}: restart it to change that"
        end

        # The number that is unused for longest, since a running request may still name its listener.
        def number(change)
          taken = [*@listeners, *@leaving, *change.fresh].map(&:number)
          loop do
            @number = (@number + 1) % NUMBERS
            return @number unless taken.include?(@number)
          end
        end

        def adjust(listener, spec)
          listener.adopt(spec)
        rescue SystemCallError => e
          Events.emit("listener.failed", listen: listener.name,
                                         reason: "its options could not be changed: #{e.message}")
          false
        end

        # The sockets of a service manager may be needed again.
        def put_away(listeners)
          listeners.each { |listener| listener.entry ? @inherited.put_back(listener.entry) : listener.close }
        end
      end
    end
  end
end
