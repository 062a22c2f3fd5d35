# frozen_string_literal: true

require "pando/cluster/control/line"
require "pando/cluster/role"
require "pando/events/catalogue"

module Pando
  module Cluster
    # A process that runs a loop of the user's. It is forked from the mold.
    #
    #   service(:flusher) { |service| flush until service.wait(10) }
    class Service < Role
      # Seconds until it asks again for events, and that it waits for them at most.
      RETRY = 0.5
      TICK = 0.5

      # Closes what belongs to clients.
      def initialize(order, context)
        super(order, context.of_pool(context.pool))
        @notes = order.notes
      end

      # @api private
      attr_reader :notes

      # (see Role#ios)
      def ios = [*super, @notes.to_io]

      # @return [Symbol]
      def name = options.services.fetch(slot)

      # @return [Boolean] whether the loop should end now
      def stopping?
        read_orders unless @leaving
        proceed_with_log
        leaving?
      end

      # Sleeps, but wakes up when the service should stop.
      # @param seconds [Float]
      # @return [Boolean] stopping?
      def wait(seconds)
        deadline = Sys.now + seconds
        until stopping?
          left = deadline - Sys.now
          return false if left <= 0

          poller.wait(left)
        end
        true
      end

      # Yields the monitor's events, such as `worker.killed`, until the service should stop. An event that comes while
      # the service is being replaced reaches its successor, and one that it was handling when it was killed comes
      # again. An exception in the block ends the service, as anywhere else in it; that event does not come again.
      #
      #     service(:telemetry) do |service|
      #       service.each_event("worker.killed", "worker.lost") { |event| Alerts.send(event.name, event.payload) }
      #     end
      #
      # @param names [Array<String, Symbol>] names of events, or how they begin: `"worker."`; none: all events
      # @yieldparam event [Event] whose values are numbers, true or texts; `events.missed` if some are no longer kept
      # @return [void]
      def each_event(*names, &block)
        raise ArgumentError, "each_event needs a block" unless block

        names = names.map { |name| Events.name_of(name) }
        until stopping?
          follow(names, &block)
          wait(RETRY) # the monitor has closed the stream
        end
      end

      # Hands the monitor one end of a pair of sockets, at which this process asks it as a client of Control.
      # @api private
      def introduce(socket) = @link.send(Message.new(:client, **place), [socket])

      # @api private
      def role = :service

      # @api private
      def run
        payload.run_service(slot, self)
        nil
      end

      # @api private
      def start
        payload.attach(self)
        raise BootError, "no service number #{slot} in the config" unless options.services[slot]
      end

      private

      def follow(names, &block)
        stream = EventStream.open(names, after: notes.event_number) { |socket| introduce(socket) }
        poller = Sys::Poller.new.add(@link, @link).add(stream, stream)
        until stopping?
          events = stream.read or return
          events.each do |number, event|
            handle(number, event, &block)
            break if stopping?
          end
          poller.wait(TICK) if events.empty?
        end
      ensure
        [poller, stream].each { |one| one&.close }
      end

      # Also an event whose block has raised is handled: it would come again and again.
      def handle(number, event)
        yield event if event
      ensure
        notes.event_number = number
      end

      def started
        name_process("")
      end

      # The service just ends: the monitor starts another one if it is still wanted.
      def signalled(_signal)
        @leaving = true
      end

      def title = "#{name} gen #{generation}"
      def outlives_monitor? = true
    end

    # The monitor's events, as a service receives them: a client of Control. Owned by a service, in its process.
    class EventStream
      CHUNK = 65_536

      # @param names [Array<String>] with which the names of the wanted events begin; empty: all
      # @param after [Integer] the number of the last event that the service knows; 0: none
      # @yieldparam socket [UNIXSocket] the monitor's end, which is to be sent there
      # @return [EventStream]
      def self.open(names, after:)
        ours, theirs = UNIXSocket.pair
        ours.write(Control::Line.encode("events", names: names.join(","), after: after))
        yield theirs
        new(ours)
      ensure
        theirs&.close
      end

      def initialize(socket)
        @socket = socket
        @rest = +""
      end

      def fileno = @socket.fileno
      def close = @socket.close

      # Never blocks.
      # @return [Array<Array(Integer, Event)>, nil] the events that have come, each with its number; nil in place of an
      #   event that is not wanted. nil: the monitor has closed its end
      def read
        chunk = @socket.read_nonblock(CHUNK, exception: false)
        return if chunk.nil?

        @rest << chunk unless chunk == :wait_readable
        lines = @rest.slice!(/\A.*\n/m).to_s.lines
        lines.filter_map { |line| Control::Line.decode(line)&.then { |word, pairs| event(word, pairs) } }
      rescue SystemCallError
        nil
      end

      private

      def event(word, pairs)
        case word
        when "following", "passed" then [pairs["number"].to_i, nil]
        when "event" then [pairs["number"].to_i, Control::Line.event(pairs)]
        when "missed" then [pairs["number"].to_i, Event.new("events.missed", { count: pairs["count"].to_i })]
        end
      end
    end
  end
end
