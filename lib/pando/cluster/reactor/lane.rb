# frozen_string_literal: true

require "pando/sys"

module Pando
  module Cluster
    module Reactor
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
