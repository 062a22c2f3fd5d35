# frozen_string_literal: true

require "chaos/control"

module Chaos
  module Faults
    # The monitor execs a new image of itself, and keeps everything it owns.
    class Upgrade < Fault
      named "upgrade", weight: 5, evidence: /\Amonitor\.upgraded\z/

      # The upgrade waits for operations that are under way; the fault waits for nothing.
      def inject = scene.control.tell("upgrade")
    end
  end
end
