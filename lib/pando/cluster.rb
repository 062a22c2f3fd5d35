# frozen_string_literal: true

require "socket"
require "pando/errors"
require "pando/events"
require "pando/sys"

module Pando
  # The processes of a server (monitor, mold, workers, services), the links between them, generations and their rollout.
  # It knows nothing of HTTP or jobs: the layer above supplies an object that does a worker's work (see Payload in
  # cluster/payload.rb).
  #
  # @api private except Worker, Service and Mold, which hooks are given
  module Cluster
    autoload :Monitor, "pando/cluster/monitor"
    autoload :Boot, "pando/cluster/boot"
    autoload :Options, "pando/cluster/options"
    autoload :Payload, "pando/cluster/payload"
    autoload :Pools, "pando/cluster/pools"

    # The sockets that the monitor listens on, and what a reload does to them.
    module Listening
      autoload :Inherited, "pando/cluster/listening/inherited"
      autoload :Listener, "pando/cluster/listening/listener"
      autoload :Listeners, "pando/cluster/listening/listeners"
    end
  end
end
