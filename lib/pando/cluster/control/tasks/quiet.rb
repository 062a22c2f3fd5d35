# frozen_string_literal: true

require "pando/cluster/control/task"

module Pando
  module Cluster
    class Control
      module Tasks
        # Job nodes take nothing new.
        class BeQuiet < Task
          def start
            return give_up("there are no job nodes") unless @cluster.quiet.concerns_anybody?

            @cluster.quiet.begin("pando quiet")
            achieve("no job node takes a new job; `pando status` shows what still runs")
          end
        end

        # And take jobs again.
        class Unquiet < Task
          def start
            return give_up("the job nodes were not quiet") unless @cluster.quiet.begun?

            @cluster.quiet.undo("pando quiet --undo")
            achieve("job nodes take jobs again: those that were quiet are replaced")
          end
        end
      end
    end
  end
end
