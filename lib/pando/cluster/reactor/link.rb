# frozen_string_literal: true

require "pando/cluster/link"
require "pando/cluster/reactor/message"

module Pando
  module Cluster
    module Reactor
      # The line between the monitor and the reactor, which has records of its own.
      #
      # @api private
      class Link < Cluster::Link
        private

        def decode(bytes) = Message.decode(bytes)
      end
    end
  end
end
