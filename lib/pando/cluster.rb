# frozen_string_literal: true

require "socket"
require "pando/errors"
require "pando/events"
require "pando/sys"

module Pando
  # Who lives and who dies: monitor, mold, workers and services, the links
  # between them, generations and their rollout. Knows nothing of HTTP or jobs:
  # what a worker does is an object given by the layer above (see Payload in
  # cluster/payload.rb).
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
