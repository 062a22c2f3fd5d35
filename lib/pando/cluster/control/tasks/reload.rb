# frozen_string_literal: true

require "pando/cluster/control/task"

module Pando
  module Cluster
    class Control
      module Tasks
        # Another release of the application.
        class ReloadRelease < Task
          # @param now [Boolean] the new release need not prove itself before all workers run it
          def initialize(cluster, now: false)
            super(cluster)
            @now = now
          end

          def start = @cluster.reload.request(@now ? "pando reload --now" : "pando reload", now: @now)
          def lasting? = true
          def obstacle = @cluster.reload.obstacle

          def observe(event)
            return follow(event) if @mine

            @mine = true if event.name == "reload.started"
            give_up("the server stops") if event.name == "monitor.stopping"
          end

          private

          def follow(event)
            case event.name
            when "reload.finished" then achieve("#{done(event)}#{@kept}")
            when "reload.serving" then serve(event) if event[:reason]
            when "reload.incomplete" then @kept = "; a restart is needed for: #{event[:settings]}"
            when "reload.failed" then give_up(event[:reason])
            when "monitor.stopping" then give_up("the server stops")
            end
          end

          def done(event) = "every worker runs the new release, after #{event[:seconds]} s"

          # No traffic has come that it could be judged by: that is not waited for.
          def serve(event)
            achieve("#{done(event)}, without proof: #{event[:reason]}. It is watched for #{event[:longest]} s at " \
                    "most, and taken back if it fails; then its settings and services follow")
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
