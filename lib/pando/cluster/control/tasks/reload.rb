# frozen_string_literal: true

require "pando/cluster/control/task"

module Pando
  module Cluster
    class Control
      module Tasks
        # Another release of the application.
        class ReloadRelease < Task
          def start = @cluster.reload.request("pando reload")
          def lasting? = true

          def observe(event)
            case event.name
            when "reload.finished"
              achieve("every worker runs the new release, after #{event[:seconds]} s#{@kept}") if @mine
            when "reload.incomplete" then @kept = "; a restart is needed for: #{event[:settings]}"
            when "reload.started" then @mine = true
            when "reload.failed" then give_up(event[:reason]) if @mine
            when "monitor.stopping" then give_up("the server stops")
            end
          end
        end

        # No other release after all.
        class CancelReload < Task
          def start
            return achieve("the reload is called off") if @cluster.reload.cancel("pando reload --cancel")

            give_up(@cluster.reload.under_way? ? "its generation is on its way already" : "no reload is under way")
          end
        end
      end
    end
  end
end
