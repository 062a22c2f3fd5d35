# frozen_string_literal: true

require "pando/cluster/link"

module Pando
  module Cluster
    # The monitor's order to fork, in the hands of the process that will do so.
    #
    # @api private
    class ForkOrder
      attr_reader :role, :seat, :slot, :generation, :link

      # @param packet [Link::Packet] a :spawn or :promote with the child's link end
      # @return [ForkOrder, nil] nil when the descriptor is missing
      def self.from(packet)
        message = packet.message
        fd, *others = packet.descriptors
        others.each { |extra| Sys.close_fd(extra) }
        fd && new(message, Link.for_fd(fd))
      end

      def initialize(message, link)
        @role = message.role
        @seat = message.seat
        @slot = message.slot
        @generation = message.generation
        @link = link
      end

      # The monitor gave up waiting and closed its end.
      def cancelled? = link.dead?
    end
  end
end
