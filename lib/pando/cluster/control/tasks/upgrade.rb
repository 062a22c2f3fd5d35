# frozen_string_literal: true

require "pando/cluster/control/task"

module Pando
  module Cluster
    class Control
      module Tasks
        # Another Pando in place of this monitor's.
        class UpgradeMonitor < Task
          def start = @cluster.upgrade.request("pando upgrade")
          def lasting? = true
          def obstacle = @cluster.upgrade.waiting

          def observe(event)
            case event.name
            when "upgrade.incomplete" then @kept = "; pando reload takes over what has changed of: #{event[:settings]}"
            when "monitor.upgraded"
              achieve("the monitor runs Pando #{event[:to]} now, and ran #{event[:from]}; " \
                      "no other process was touched#{@kept}")
            when "upgrade.failed" then give_up(event[:reason])
            end
          end
        end
      end
    end
  end
end
