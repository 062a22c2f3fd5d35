# frozen_string_literal: true

require "chaos/clock"
require "chaos/campaign"
require "chaos/options"

# A server under a mixed load while faults of all kinds are injected, and the invariants that must hold anyway:
# docs/chaos.md.
#
#     bin/chaos --minutes 3 --seed 7
#
# Campaign      one run: rounds of faults, each followed by the recovery to full strength
#   Schedule    which faults when, from the seed
#   Stage       the server, in its own folder
#   Load        its clients, in a separate process
#   Faults      the faults; each class is one kind
#   Watch       checks the processes all the time
#   Ledger      judges each request that failed, and finds those that ran twice
#   Report      the table at the end
module Chaos
  # @param arguments [Array<String>] the command line
  # @return [Boolean] whether all invariants held
  def self.run(arguments)
    Campaign.new(Options.parse(arguments)).run
  end
end
