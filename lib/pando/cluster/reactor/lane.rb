# frozen_string_literal: true

require "pando/sys"

module Pando
  module Cluster
    module Reactor
      # A worker's place in the channel, as the monitor keeps it: its number, the
      # eventfd that the reactor wakes the worker by, and the reactor's end of the
      # socket on which descriptors travel between the two. The monitor keeps them,
      # so that a new reactor gets what the old one had.
      #
      # @api private
      class Lane
        attr_reader :number, :child

        # @param record [Upgrade::Record] @param state [Upgrade::State]
        def self.taken_up(record, state, child)
          eventfd, socket = %i[eventfd socket].map { |key| state.take(record.integer(key)) }
          new(record.integer(:number), child, IO.for_fd(eventfd, "r+b"), [UNIXSocket.for_fd(socket), nil])
        end

        # The worker has its ends.
        def to_state(state)
          state.add("lane", number: number, seat: child.seat,
                            eventfd: state.keep(@eventfd), socket: state.keep(@socket))
        end

        # @param eventfd [IO] @param sockets [Array(UNIXSocket, UNIXSocket)] the reactor's end and the worker's
        def initialize(number, child, eventfd, sockets)
          @number = number
          @child = child
          @eventfd = eventfd
          @socket, @worker_socket = sockets
        end

        # @return [Array<IO>] what the worker gets with its order
        def for_worker = [@eventfd, @worker_socket]
        # @return [Array<IO>] what each reactor gets
        def for_reactor = [@eventfd, @socket]

        # The worker has got it, or nobody will.
        def hand_over = @worker_socket.close

        def close = [@eventfd, @socket, @worker_socket].compact.each(&:close)
      end
    end
  end
end
