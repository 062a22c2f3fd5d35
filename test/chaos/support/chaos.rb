# frozen_string_literal: true

require "chaos/clock"
require "chaos/campaign"
require "chaos/options"

# A server under a mixed load while everything goes wrong that can, and what must hold all the same: docs/chaos.md.
#
#     bin/chaos --minutes 3 --seed 7
#
# Campaign      one run: rounds of faults, each followed by the way back to full strength
#   Schedule    which faults when, from the seed
#   Stage       the server, in a folder of its own
#   Load        its clients, in a process of their own
#   Faults      what goes wrong; each class is one kind
#   Watch       looks at the processes all the time
#   Ledger      judges each request that did not get its answer, and finds those that were done twice
#   Report      the table at the end
module Chaos
  # @param arguments [Array<String>] the command line
  # @return [Boolean] whether all invariants held
  def self.run(arguments)
    Campaign.new(Options.parse(arguments)).run
  end
end
