# frozen_string_literal: true

module Chaos
  module Faults
    # A node is gone in the midst of its jobs, or the mold of the nodes.
    class KillNode < Kill
      include OfNodes

      named "kill node", weight: 24, evidence: superclass.evidence

      ROLES = ["node", "node", "node", "node mold"].freeze
    end

    # Their next mold, on its way.
    class KillUpcomingNodeMold < KillUpcomingMold
      include OfNodes

      named "kill upcoming node mold", weight: 4, evidence: superclass.evidence
    end

    # The process between their mold and a node to be.
    class KillMiddleOfNodes < KillMiddle
      include OfNodes

      named "kill middle process of nodes", weight: 4, evidence: superclass.evidence
    end

    # It says on its link what it never should: a node while it does a job, their mold when it forks.
    class LyingNode < Lie
      include OfNodes

      named "lying node", weight: 5, evidence: LyingWorker.evidence

      def inject
        File.write(stage.path("lie at work"), plan["lie"])
        scene.wait(3) { !File.exist?(stage.path("lie at work")) }
      end
    end

    # As a lying mold, if no other one forks first.
    class LyingNodeMold < LyingMold
      include OfNodes

      named "lying node mold", weight: 4, evidence: superclass.evidence
    end
  end
end
