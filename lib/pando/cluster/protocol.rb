# frozen_string_literal: true

module Pando
  module Cluster
    # What monitor, molds, workers and reactor say to each other: the records of links (Message,
    # Reactor::Message), the descriptors and the variable that a cold mold is started with (Boot), and the
    # layouts of scoreboard and channel. A change to any of them that the other side would take amiss gets
    # the next number.
    #
    # A monitor speaks the protocol of its living children, and no other. So a release whose Pando has
    # another number is not booted by a reload, and a Pando with another number does not take over a
    # running cluster: there it is stop and start.
    PROTOCOL = 4
  end
end
