# frozen_string_literal: true

require "pando/cluster/link"
require "pando/sys"

module Pando
  module Cluster
    # The monitor's order to fork, as the forking process has received it.
    class ForkOrder
      attr_reader :role, :seat, :slot, :generation, :link
      # @return [String, nil] the name of the pool, of another pool's mold
      attr_reader :pool
      # @return [LaneDescriptors, nil] of a worker behind the reactor
      attr_reader :lane_descriptors

      # @param packet [Link::Packet] a :spawn or :promote with the child's link end
      # @return [ForkOrder, nil] nil: the descriptor is missing
      def self.from(packet)
        message = packet.message
        fd, *others = packet.descriptors
        lane_descriptors = LaneDescriptors.from(message.lane, others)
        fd && new(message, Link.for_fd(fd), lane_descriptors)
      end

      def initialize(message, link, lane_descriptors = nil)
        @role = message.role
        @seat = message.seat
        @slot = message.slot
        @generation = message.generation
        @link = link
        @pool = message.text unless message.text.empty?
        @lane_descriptors = lane_descriptors
      end

      # In the forker: closes what now belongs to the new process.
      def close
        link.close
        lane_descriptors&.close
      end

      # Whether the monitor has closed its end of the link, since it waits no longer.
      def cancelled? = link.dead?
    end

    # A worker's ends of its lane to the reactor, which came with the order to fork it.
    class LaneDescriptors
      attr_reader :number, :eventfd, :socket, :memory

      # @param number [Integer] of the lane
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
