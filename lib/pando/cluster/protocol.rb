# frozen_string_literal: true

module Pando
  module Cluster
    # What monitor, molds, workers and reactor say to each other, and what they share. Raised by one when
    # processes of this version could not serve under a monitor of the one before.
    PROTOCOL = 1
  end
end
