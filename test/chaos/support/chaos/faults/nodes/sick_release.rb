# frozen_string_literal: true

module Chaos
  module Faults
    # A release that harms every job, which the nodes' canary must detect.
    class SickNodeRelease < SickRelease
      include OfNodes

      named "sick release of nodes", weight: 4, evidence: superclass.evidence

      def failures = []

      private

      def mark = stage.path("sick nodes")

      def poisoned(rackup, config)
        [rackup, config.sub("QueueRunner.new(node, folder)", "QueueRunner.new(node, folder, #{plan["how"].inspect})")]
      end

      def failed?(number) = !scene.chronicle.told("canary.failed", number, pool: Roll::NODES).nil?

      def passed(number)
        names = %w[canary.passed canary.unproven]
        names.filter_map { |name| scene.chronicle.told(name, number, pool: Roll::NODES) }.first
      end

      def decided = generation && (failed?(generation) || passed(generation)) && generation

      # The reload as a whole may have another outcome: a pool that already serves the release may keep it.
      def replace(_number)
        TRIES.times { return if another_release? }
        raise "the release whose jobs #{plan["how"]} is not replaced"
      end

      # If a reload is under way, another one follows it.
      def another_release?
        before = heard("reload.started")
        stage.signal("HUP")
        return false unless scene.wait(PATIENCE) { heard("reload.started") > before }

        finished, failed = %w[reload.finished reload.failed].map { |name| heard(name) }
        scene.wait(PATIENCE) { heard("reload.finished") > finished || heard("reload.failed") > failed }
        heard("reload.finished") > finished
      end

      def heard(name) = scene.chronicle.names[name]
    end
  end
end
