# frozen_string_literal: true

require "forwardable"
require "socket"
require "pando/errors"
require "pando/events"
require "pando/sys"
require "pando/wording"
require "pando/cluster/message"
require "pando/serializable"

module Pando
  # The processes of a server (monitor, mold, workers, services), the links between them, generations and their rollout.
  # It knows nothing of HTTP or jobs: the layer above supplies an object that does a worker's work (Server::Payload).
  #
  # This file comes first: the other files of the layer do not require again what it requires. The parts of the
  # monitor have methods with the same meaning. `reconcile` and `proceed` are called at each turn of the monitor's loop;
  # Monitor#take_turn says which of them only until the server stops. `due` says when the part needs the next turn at
  # the latest (on Sys.now; nil: it waits for nothing). `to_state` and `from_state` carry its facts over an upgrade of
  # the monitor, see Upgrade::State.
  #
  # @api private except Worker, Service and Mold, which hooks are given
  module Cluster
    autoload :Monitor, "pando/cluster/monitor"
    autoload :Boot, "pando/cluster/boot"
    autoload :Options, "pando/cluster/options"
    autoload :Pools, "pando/cluster/pools"

    # The sockets that the monitor listens on, and what a reload does to them.
    module Listening
      autoload :Inherited, "pando/cluster/listening/listener"
      autoload :Listener, "pando/cluster/listening/listener"
      autoload :Listeners, "pando/cluster/listening/listeners"
    end

    # Shortens #inspect of an object that refers to many others. Ruby shows the receiver in the message of a
    # NoMethodError, and would follow each reference.
    module Brief
      def inspect = "#<#{self.class}>"
    end
  end
end
