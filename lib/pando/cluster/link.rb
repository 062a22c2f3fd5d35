# frozen_string_literal: true

require "pando/cluster/service_notes"

module Pando
  module Cluster
    # One end of the socket pair between monitor and child (AF_UNIX, SOCK_SEQPACKET), which exists before the child.
    class Link
      # A received message, its sender's pid by the kernel's word, and its descriptors. stripped: it came without them,
      # because this process has no room for more.
      Packet = Struct.new(:message, :sender, :descriptors, :stripped)

      # The peer broke the format, and must be ended for it.
      class Malformed < Pando::Error; end

      # @param records [Class] what it carries: Message, or Reactor::Message
      # @return [Array(Link, Link)] the monitor's end and the child's
      def self.pair(records = Message)
        ours, theirs = UNIXSocket.pair(:SEQPACKET)
        ours.setsockopt(Socket::SOL_SOCKET, Socket::SO_PASSCRED, 1)
        [new(ours, records), new(theirs, records)]
      end

      def self.for_fd(fd, records = Message)
        socket = UNIXSocket.for_fd(fd)
        socket.close_on_exec = true
        new(socket, records)
      end

      def initialize(socket, records = Message)
        @socket = socket
        @records = records
        @lost = false
      end

      def fileno = @socket.fileno
      def to_io = @socket
      def close = @socket.close
      def closed? = @socket.closed?

      # Never blocks.
      # @return [Boolean] false: the peer is gone, its queue is full, or too many of the user's descriptors are in
      #   flight (ETOOMANYREFS, unix(7))
      def send(message, descriptors = [])
        Sys.send_record(@socket, message.encode, descriptors)
      rescue Errno::EPIPE, Errno::ECONNRESET, Errno::ECONNREFUSED, Errno::ENOTCONN
        @lost = true
        false
      rescue Errno::EAGAIN, Errno::ETOOMANYREFS, Errno::ENOBUFS, IOError
        false
      end

      def lost? = @lost

      # Never blocks.
      # @return [Packet, :nothing, :closed]
      # @raise [Malformed]
      def receive
        record = Sys.receive_record(@socket)
        return :closed if record.nil?
        return :nothing unless record

        bytes, sender, descriptors, stripped = record
        message = @records.decode(bytes || stripped)
        return Packet.new(message, sender, descriptors) if message && bytes

        descriptors.each { |fd| Sys.close_fd(fd) }
        raise Malformed, "a record of an unknown format" unless message

        Packet.new(message, sender, [], true)
      end

      # Whether the other end has been closed, which cancels an order that came with this link.
      def dead?
        @socket.recv_nonblock(1, Socket::MSG_PEEK, exception: false).then { |peeked| peeked.nil? || peeked == "" }
      rescue SystemCallError
        true
      end
    end

    # The monitor's order to fork, as the forking process has received it.
    class ForkOrder
      attr_reader :role, :seat, :slot, :generation, :link
      # @return [String, nil] the name of the pool, of another pool's mold
      attr_reader :pool
      # @return [Integer, nil] seconds after which a worker that is to fork a mold refuses; nil: its work decides
      attr_reader :within
      # @return [LaneDescriptors, nil] of a worker behind the reactor
      attr_reader :lane_descriptors
      # @return [ServiceNotes, nil] of a service
      attr_reader :notes

      # @param packet [Link::Packet] a :spawn or :promote with the child's link end
      # @return [ForkOrder, nil] nil: the descriptor is missing
      def self.from(packet)
        message = packet.message
        fd, *others = packet.descriptors
        notes = ServiceNotes.for_fd(others.shift) if message.role == :service && others.any?
        lane_descriptors = LaneDescriptors.from(message.lane, others)
        fd && new(message, Link.for_fd(fd), lane_descriptors, notes)
      end

      def initialize(message, link, lane_descriptors = nil, notes = nil)
        @role = message.role
        @seat = message.seat
        @slot = message.slot
        @generation = message.generation
        @link = link
        @pool = message.text unless message.text.empty?
        @within = message.lane if message.kind == :promote && message.lane.positive?
        @lane_descriptors = lane_descriptors
        @notes = notes
      end

      # In the forker: closes what now belongs to the new process.
      def close = [link, lane_descriptors, notes].compact.each(&:close)

      # Whether the monitor has closed its end of the link, since it waits no longer.
      def cancelled? = link.dead?
    end

    # A worker's ends of its lane to the reactor, which came with the order to fork it.
    class LaneDescriptors
      attr_reader :number, :eventfd, :socket, :memory

      # @param descriptors [Array<Integer>] as received; closed unless there are three
      # @return [LaneDescriptors, nil] nil in direct mode
      def self.from(number, descriptors)
        return new(number, *descriptors) if descriptors.size == 3

        descriptors.each { |fd| Sys.close_fd(fd) }
        nil
      end

      def initialize(number, eventfd, socket, memory)
        @number = number
        @eventfd = IO.for_fd(eventfd, "r+b")
        @socket = UNIXSocket.for_fd(socket)
        @memory = IO.for_fd(memory, "r+b")
        ios.each { |io| io.close_on_exec = true }
      end

      def ios = [eventfd, socket, memory]
      def close = ios.each(&:close)
    end
  end
end
