# frozen_string_literal: true

module Chaos
  module Faults
    # Kills a worker of the pool for some paths, or its mold.
    class KillApart < Kill
      include OfApart

      named "kill apart", weight: 24, evidence: superclass.evidence

      ROLES = ["apart worker", "apart worker", "apart worker", "apart mold"].freeze
    end

    # Kills that pool's next mold while it starts.
    class KillUpcomingApartMold < KillUpcomingMold
      include OfApart

      named "kill upcoming apart mold", weight: 4, evidence: superclass.evidence
    end

    # Kills the intermediate process between that pool's mold and a new worker.
    class KillMiddleApart < KillMiddle
      include OfApart

      named "kill middle process apart", weight: 4, evidence: superclass.evidence
    end

    # Stops a process of that pool for a moment.
    class FreezeApart < Freeze
      include OfApart

      named "freeze apart", weight: 8

      ROLES = ["apart worker", "apart worker", "apart mold"].freeze
    end

    # Stops a process of that pool until the server detects it.
    class HangApart < Hang
      include OfApart

      named "hang apart", weight: 3, evidence: superclass.evidence

      LIMITS = %w[worker mold].to_h { |role| [Roll.called(role, Roll::APART), superclass::LIMITS.fetch(role)] }.freeze
    end

    # Reforks only that pool.
    class ReforkApart < Fault
      include OfApart

      named "refork apart", weight: 8, evidence: /\Arefork\.finished\z/

      def inject = scene.control.tell("refork pool=#{Roll::APART} force=yes")
    end

    # Changes the number of its workers.
    class ScaleApart < Scale
      include OfApart

      named "scale apart", weight: 4, evidence: superclass.evidence

      private

      def usual = Stage::APART
      def scale(workers) = scene.control.tell("scale pool=#{Roll::APART} workers=#{workers}")
    end
  end
end
