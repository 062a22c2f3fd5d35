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
      # Bytes of a packet: a ticket, and what a client has sent ahead.
      PACKET = 16_384 + 64

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
        @lane.drain # it has counted earlier calls
        return unless @lane.starve

        pace.wait { |seconds| Wire.wait_readable(@eventfd.fileno, seconds) }
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
        descriptor, = await(PATIENCE)
        File.for_fd(descriptor, File::RDONLY | File::BINARY).tap(&:rewind)
      end

      # The client's socket, after the frame that asks for it: the client may have to take
      # what was answered before.
      #
      # @param patience [Float] seconds
      # @return [Array(Integer, String)] a descriptor, and what the client has sent behind its request
      # @raise [ClientGone]
      def fetch_socket(patience)
        await([patience, PATIENCE].max)
      end

      private

      def await(patience)
        ticket = @lane.ticket
        limit = now + patience
        loop do
          wanted = @lane.wanted? # before the look: it may come with the request's end
          found = receive(ticket)
          return found if found
          raise ClientGone, "the reactor does not pass what belongs to the request" if !wanted || now > limit

          Wire.wait_readable(@socket.fileno, LOOK)
        end
      end

      # @return [Array(Integer, String), nil] nil: nothing came yet
      def receive(ticket)
        while (record = next_record)
          bytes, _sender, descriptors = record
          lose(descriptors) unless bytes
          mine, *others = bytes.start_with?(ticket) ? descriptors : [nil, *descriptors]
          others.each { |other| Sys.close_fd(other) }
          return [mine, bytes.byteslice(ticket.bytesize..)] if mine
          raise ClientGone, "the client is gone" if bytes.start_with?(ticket)
        end
      end

      # The record was cut short and what it brought is gone: nothing else would come, however long one waits.
      def lose(descriptors)
        descriptors.each { |descriptor| Sys.close_fd(descriptor) }
        raise ClientGone, "there is no free descriptor for what belongs to the request"
      end

      # @return [Array, false] false if none waits
      def next_record
        record = Sys.receive_record(@socket, PACKET)
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
