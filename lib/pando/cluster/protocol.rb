# frozen_string_literal: true

module Pando
  module Cluster
    # The version of what monitor, molds, workers and reactor exchange: the records of links (Message,
    # Reactor::Message), the descriptors and the variable that a cold mold is started with (Boot), and the layouts of
    # scoreboard, channel and lanes. An incompatible change to any of them gets the next number.
    #
    # A monitor speaks only the protocol of its living children. A reload does not boot a release whose Pando has
    # another number, and a Pando with another number does not take over a running cluster: the server must be stopped
    # and started.
    PROTOCOL = 12
  end
end
