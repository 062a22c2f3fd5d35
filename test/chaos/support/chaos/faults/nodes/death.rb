# frozen_string_literal: true

module Chaos
  module Faults
    # Kills a node in the middle of its jobs, or the nodes' mold.
    class KillNode < Kill
      include OfNodes

      named "kill node", weight: 24, evidence: superclass.evidence

      ROLES = ["node", "node", "node", "node mold"].freeze
    end

    # Kills the nodes' next mold while it starts.
    class KillUpcomingNodeMold < KillUpcomingMold
      include OfNodes

      named "kill upcoming node mold", weight: 4, evidence: superclass.evidence
    end

    # Kills the intermediate process between the nodes' mold and a new node.
    class KillMiddleOfNodes < KillMiddle
      include OfNodes

      named "kill middle process of nodes", weight: 4, evidence: superclass.evidence
    end

    # Sends a wrong message on its link: a node while it runs a job, or the nodes' mold when it forks.
    class LyingNode < Lie
      include OfNodes

      named "lying node", weight: 5, evidence: LyingWorker.evidence

      def inject
        File.write(stage.path("lie at work"), plan["lie"])
        scene.wait(3) { !File.exist?(stage.path("lie at work")) }
      end
    end

    # The nodes' mold lies, unless another process forks first.
    class LyingNodeMold < LyingMold
      include OfNodes

      named "lying node mold", weight: 4, evidence: superclass.evidence
    end
  end
end
