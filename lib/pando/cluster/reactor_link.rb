# frozen_string_literal: true

require "pando/cluster/link"
require "pando/cluster/reactor_message"

module Pando
  module Cluster
    # The line between the monitor and the reactor, which has records of its own.
    #
    # @api private
    class ReactorLink < Link
      private

      def decode(bytes) = ReactorMessage.decode(bytes)
    end
  end
end
