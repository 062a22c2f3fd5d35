# frozen_string_literal: true

require "pando/cluster/brief"
require "pando/cluster/reactor/message"

module Pando
  module Cluster
    module Reactor
      # The lanes that are given to workers, and what the reactor must be told of
      # them. What it cannot take now, because its link is full or because there is
      # no reactor, waits here.
      #
      # Owned by the monitor.
      #
      # @api private
      class Lanes
        include Brief

        # Their handler is the kernel's or the interpreter's: the request may have caused it.
        CRASHES = %w[SEGV BUS ABRT ILL FPE TRAP SYS].map { |name| Signal.list.fetch(name) }.freeze

        # @param setup [#lane, #lanes] see Payload#reactor
        def initialize(setup, oom)
          @setup = setup
          @oom = oom
          # The longest unused first: the reactor knows of a death long before the number comes back.
          @free = (0...setup.lanes).to_a
          @open = {}
          @untold = []
        end

        # @return [Array<IO>] what every mold inherits
        def descriptors = @setup.descriptors

        # @param child [Child] who is about to be ordered
        # @return [Lane]
        # @raise [Pando::Error] all are taken
        # @raise [SystemCallError] the kernel has no descriptor left
        def open_for(child)
          number = @free.first or raise Pando::Error, "all #{@setup.lanes} lanes to the reactor are taken"
          lane = Lane.new(number, child, *@setup.lane)
          @free.shift
          @open[number] = lane
          tell_open(lane)
          lane
        end

        # @return [Child, nil] whose lane this is
        def owner(number) = @open[number]&.child

        # Whose worker is gone: the reactor answers for what it has left undone.
        def close_deserted
          deserted = @open.each_value.select { |lane| lane.child.gone? }
          deserted.each { |lane| close(lane) }
        end

        # For a new reactor, which knows of none.
        def tell_all
          @untold.clear
          @open.each_value { |lane| tell_open(lane) }
        end

        # There is no reactor; the next one will be told all.
        # @return [false]
        def tell_nobody
          @untold.clear
          false
        end

        # @param reactor [Child]
        # @return [Boolean] whether it knows all now
        def tell(reactor)
          @untold.shift while @untold.any? && reactor.order(*@untold.first)
          @untold.empty?
        end

        # @return [Boolean] whether the reactor knows all, if there is one
        def told? = @untold.empty?

        # @param state [Upgrade::State]
        def to_state(state)
          state.add("channel", descriptors: descriptors.map { |one| state.keep(one) }, free: @free)
          @open.each_value { |lane| lane.to_state(state) }
        end

        def from_state(state)
          state.all("lane").each do |record|
            child = state.roster[record.integer(:seat)] or raise Upgrade::Unreadable, "a lane is nobody's"

            @open[record.integer(:number, among: 0...@setup.lanes)] = Lane.taken_up(record, state, child)
          end
          @free = state.one("channel").integers(:free).uniq - @open.keys
        end

        private

        def tell_open(lane)
          @untold << [Message.new(:lane_open, lane: lane.number), lane.for_reactor]
        end

        # What was not told of its opening has nobody to interest.
        def close(lane)
          @open.delete(lane.number)
          @untold.reject! { |message, _| message.lane == lane.number }
          @untold << [ending_of(lane), []]
          @free << lane.number
          lane.close
        end

        def ending_of(lane)
          return Message.new(:lane_close, lane: lane.number) if lane.child.ending.nil?

          Message.new(:lane_dead, lane: lane.number, cause: cause(lane.child))
        end

        def cause(child)
          return :timeout if child.overdue?
          return :suspect if child.suspect?
          return :died unless child.ending.killed?

          CRASHES.include?(child.ending.number) || @oom.victim?(child) ? :suspect : :died
        end
      end

      # A worker's lane, as the monitor keeps it: its number, the memory that the
      # reactor shares with this worker and nobody else, the eventfd that the reactor
      # wakes the worker by, and the reactor's end of the socket on which descriptors
      # travel between the two. All are new for each worker, so that nobody gets what
      # another may have damaged. The monitor keeps them, so that a new reactor gets
      # what the old one had.
      #
      # @api private
      class Lane
        attr_reader :number, :child

        # @param record [Upgrade::Record] @param state [Upgrade::State]
        def self.taken_up(record, state, child)
          eventfd, socket, memory = %i[eventfd socket memory].map { |key| state.take(record.integer(key)) }
          new(record.integer(:number), child, IO.for_fd(eventfd, "r+b"), [UNIXSocket.for_fd(socket), nil],
              IO.for_fd(memory, "r+b"))
        end

        # The worker has its ends.
        def to_state(state)
          state.add("lane", number: number, seat: child.seat,
                            eventfd: state.keep(@eventfd), socket: state.keep(@socket), memory: state.keep(@memory))
        end

        # @param eventfd [IO] @param sockets [Array(UNIXSocket, UNIXSocket)] the reactor's end and the worker's
        # @param memory [IO]
        def initialize(number, child, eventfd, sockets, memory)
          @number = number
          @child = child
          @eventfd = eventfd
          @socket, @worker_socket = sockets
          @memory = memory
        end

        # @return [Array<IO>] what the worker gets with its order
        def for_worker = [@eventfd, @worker_socket, @memory]
        # @return [Array<IO>] what each reactor gets
        def for_reactor = [@eventfd, @socket, @memory]

        # The worker has got it, or nobody will.
        def hand_over = @worker_socket.close

        def close = [@eventfd, @socket, @worker_socket, @memory].compact.each(&:close)
      end
    end
  end
end
