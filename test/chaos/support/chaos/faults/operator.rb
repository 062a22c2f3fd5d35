# frozen_string_literal: true

module Chaos
  module Faults
    # Not a fault in itself: an operator uses the server meanwhile. Whether a command succeeds depends on the other
    # faults. Clients must not notice.
    class Refork < Fault
      named "refork", weight: 10, evidence: /\Arefork\.finished\z/

      # Forced, in case reforking is suspended after many failures.
      def self.plan(random) = { "by" => %w[signal force].sample(random: random) }

      def inject = plan["by"] == "signal" ? stage.signal("USR2") : scene.control.tell("refork force=yes")
    end

    # Deploys another good release.
    class Reload < Fault
      named "reload", weight: 8, evidence: /\Areload\.finished\z/

      def inject
        stage.release
        stage.signal("HUP")
      end
    end

    # Deploys a release that does not serve, which must change nothing.
    class BadRelease < Fault
      named "bad release", weight: 4, evidence: /\Areload\.failed\z/

      KINDS = {
        "boot" => ->(rackup, config) { [%(raise "this release does not boot"\n#{rackup}), config] },
        "syntax" => ->(rackup, config) { [rackup, "#{config}\nworkers ("] },
        "hook" => ->(rackup, config) { [rackup, %(#{config}\nafter_worker_fork { raise "no worker of this release" })] }
      }.freeze

      def self.plan(random) = { "wrong" => self::KINDS.keys.sample(random: random) }

      def inject
        failed = scene.chronicle.names["reload.failed"]
        stage.spoil(&self.class::KINDS.fetch(plan["wrong"]))
        stage.signal("HUP")
        scene.wait(20) { scene.chronicle.names["reload.failed"] > failed }
      ensure
        stage.restore
      end
    end

    # Changes the number of workers.
    class Scale < Fault
      named "scale", weight: 5, evidence: /\Aworkers\.scaled\z/

      def self.plan(random) = { "workers" => 1 + random.rand(7), "seconds" => (random.rand * 3).round(2) }

      def inject = scale(plan["workers"])
      def lift = scale(usual)

      private

      def usual = Stage::WORKERS
      def scale(workers) = scene.control.tell("scale workers=#{workers}")
    end
  end
end
