# frozen_string_literal: true

require "pando/cluster/lane_descriptors"
require "pando/cluster/link"

module Pando
  module Cluster
    # The monitor's order to fork, in the hands of the process that will do so.
    #
    # @api private
    class ForkOrder
      attr_reader :role, :seat, :slot, :generation, :link
      # @return [String, nil] of a mold that is another pool's: the name of that
      attr_reader :pool
      # @return [LaneDescriptors, nil] of a worker behind the reactor
      attr_reader :lane_descriptors

      # @param packet [Link::Packet] a :spawn or :promote with the child's link end
      # @return [ForkOrder, nil] nil when the descriptor is missing
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

      # In the forker: they are the new process's now, or nobody's.
      def close
        link.close
        lane_descriptors&.close
      end

      # The monitor gave up waiting and closed its end.
      def cancelled? = link.dead?
    end
  end
end
