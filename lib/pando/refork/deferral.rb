# frozen_string_literal: true

module Pando
  module Refork
    # How long a worker goes without a full collection. What it costs to put it off is what the process grows by:
    # garbage among its old objects stays. When it has grown by a part of what it was after its fork, and Ruby wants a
    # full collection, it had better be replaced; when it has grown by more, and nobody has replaced it, Ruby has its
    # way.
    #
    # Decides by what it is shown, and reads nothing itself. Of a MajorGCDeferral, in a worker.
    #
    # @api private
    class Deferral
      # Growth from which on the worker had better be replaced, as a share and in bytes at least.
      WORTH = 0.15
      WORTH_BYTES = 16 * (1024**2)
      # And from which on nothing is put off any more: so many times that.
      MOST = 3
      # Ruby wants it for lack of free slots: it takes more room instead, and there is no garbage in that.
      ROOM = :nofree

      # @param size [Integer] bytes that the worker had after its fork
      def initialize(size)
        @size = size
        @worth = [size * WORTH, WORTH_BYTES].max
        @wanted = false
      end

      # @param size [Integer] bytes that it has now
      # @param cause [Symbol, nil] for which Ruby wants a full collection
      # @return [:go_on, :replace, :give_in]
      def look(size, cause)
        @wanted ||= !cause.nil? && cause != ROOM
        grown = size - @size
        return :give_in if grown >= @worth * MOST

        @wanted && grown >= @worth ? :replace : :go_on
      end
    end
  end
end
