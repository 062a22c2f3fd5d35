# frozen_string_literal: true

require "pando/cluster/control/task"

module Pando
  module Cluster
    class Control
      module Tasks
        # Out of the load balancers' rotation, and nobody asks any more.
        class Drain < Task
          # Seconds without a request that count as silence.
          SILENCE = 1.0

          def start
            return give_up("nobody would notice: the setting `health` is off") unless @cluster.drain.visible?

            @cluster.drain.begin("pando drain")
            @silent_since = Sys.now
          end

          def lasting? = true

          def check
            return give_up("`pando drain --undo` has put the server back into rotation") unless @cluster.drain.begun?

            listen
            achieve("nobody sends requests any more") if @cluster.drain.noticed? && Sys.now - @silent_since > SILENCE
          end

          # Load balancers look at the health of a server only now and then.
          def obstacle
            drain = @cluster.drain
            return unless drain.begun?
            return ["load balancers are given `drain_delay` to notice", drain.left] unless drain.noticed?

            ["a second without a request must pass", nil]
          end

          def observe(event)
            give_up("the server stops") if event.name == "monitor.stopping"
          end

          private

          def listen
            asked = @cluster.reactors.state[:requests]
            @silent_since = Sys.now if asked != @asked || @cluster.reactors.in_flight[:requests].positive?
            @asked = asked
          end
        end

        # Back into it.
        class Undrain < Task
          def start
            return give_up("the server was not draining") unless @cluster.drain.begun?

            @cluster.drain.undo("pando drain --undo")
            achieve("the server is in rotation again")
          end
        end
      end
    end
  end
end
