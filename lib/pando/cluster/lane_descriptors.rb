# frozen_string_literal: true

require "pando/sys"

module Pando
  module Cluster
    # A worker's ends of its lane to the reactor: they came with the order to fork it.
    #
    # @api private
    class LaneDescriptors
      attr_reader :number, :eventfd, :socket, :memory

      # @param number [Integer] of the lane
      # @param descriptors [Array<Integer>] as received; closed unless they are what they must be
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
