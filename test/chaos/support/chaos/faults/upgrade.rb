# frozen_string_literal: true

require "chaos/control"
require "support/checkout"

module Chaos
  module Faults
    # The monitor goes on as another image of itself, with all that it owns.
    class Upgrade < Fault
      named "upgrade", weight: 5, evidence: /\Amonitor\.upgraded\z/

      def self.obstacle(_stage)
        "this Pando cannot" unless File.exist?(Support::Checkout.path("lib/pando/cli/upgrade.rb"))
      end

      # It waits for whatever is under way, and we for nothing.
      def inject = scene.control.tell("upgrade")
    end
  end
end
