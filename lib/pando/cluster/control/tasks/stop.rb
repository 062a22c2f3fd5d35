# frozen_string_literal: true

require "pando/cluster/control/task"

module Pando
  module Cluster
    class Control
      module Tasks
        # The end of the server.
        class Stop < Task
          def initialize(cluster, how)
            super(cluster)
            @how = how
          end

          def start
            return @cluster.drain.stop("pando stop") if @how == :gracefully

            @cluster.shutdown.public_send(@how, "pando stop")
          end

          def observe(event)
            achieve("the server has stopped") if event.name == "monitor.stopped"
          end
        end
      end
    end
  end
end
