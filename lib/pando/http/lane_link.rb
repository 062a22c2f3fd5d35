# frozen_string_literal: true

require "pando/http/errors"
require "pando/sys"

module Pando
  module HTTP
    # A worker's {Lane} with the two descriptors that belong to it: the eventfd
    # that the reactor wakes it by, and the socket on which files travel. Here is
    # all the waiting that a lane needs. One per worker.
    #
    # @api private
    class LaneLink
      # Seconds that the reactor may take to pass a file; and between two looks
      # whether it is still wanted.
      PATIENCE = 10.0
      LOOK = 0.25

      # @return [Lane]
      attr_reader :lane

      # @param lane [Lane]
      # @param eventfd [IO]
      # @param socket [UNIXSocket] of packets
      def initialize(lane, eventfd, socket)
        @lane = lane
        @eventfd = eventfd
        @socket = socket
      end

      # Waits until the reactor has read enough for a frame of any size to fit.
      #
      # @param pace [Pace]
      # @raise [ClientTooSlow]
      def wait_for_room(pace)
        return unless @lane.starve

        pace.wait { |seconds| Wire.wait_readable(@eventfd.fileno, seconds) }
        @lane.drain
      ensure
        @lane.fed
      end

      # Puts a descriptor on the socket; its frame comes next.
      #
      # @param file [File]
      # @param pace [Pace]
      # @raise [ClientGone] if there is no reactor
      def pass(file, pace)
        Sys.send_record(@socket, @lane.ticket, [file])
      rescue Errno::EAGAIN, Errno::ENOBUFS
        pace.wait { |seconds| Wire.wait_writable(@socket.fileno, seconds) }
        retry
      rescue SystemCallError => e
        raise ClientGone, e.message
      end

      # The request's file, after the frame that asks for it.
      #
      # @return [File] for reading, at its beginning
      # @raise [ClientGone]
      def fetch
        ticket = @lane.ticket
        limit = now + PATIENCE
        until (descriptor = receive(ticket))
          raise ClientGone, "the reactor does not pass the request's body" if now > limit || !@lane.wanted?

          Wire.wait_readable(@socket.fileno, LOOK)
        end
        File.for_fd(descriptor, File::RDONLY | File::BINARY).tap(&:rewind)
      end

      private

      # @return [Integer, nil] a descriptor; nil: nothing came yet
      def receive(ticket)
        while (record = next_record)
          bytes, _sender, descriptors = record
          mine, *others = bytes == ticket ? descriptors : [nil, *descriptors]
          others.each { |other| Sys.close_fd(other) }
          raise ClientGone, "the client is gone" if bytes == ticket && mine.nil?
          return mine if mine
        end
      end

      # @return [Array, false] false if none waits
      def next_record
        record = Sys.receive_record(@socket)
        raise ClientGone, "the reactor is gone" if record.nil?

        record
      rescue SystemCallError => e
        raise ClientGone, e.message
      end

      def now
        Process.clock_gettime(Process::CLOCK_MONOTONIC)
      end
    end
  end
end
