# frozen_string_literal: true

module Chaos
  module Faults
    # Kills a process with a signal that cannot be handled or that looks like a crash.
    class Kill < Fault
      named "kill", weight: 30, evidence: /\A(worker|mold|reactor|service)\.(lost|exited|failed)\z/

      ROLES = %w[worker worker worker mold reactor service].freeze
      SIGNALS = %w[KILL KILL KILL SEGV ABRT BUS TERM].freeze

      def self.plan(random)
        { "role" => self::ROLES.sample(random: random), "signal" => SIGNALS.sample(random: random),
          "pick" => random.rand.round(3), "times" => [1, 1, 1, 2, 4].sample(random: random) }
      end

      def name = "#{super} #{plan["role"]}"

      def inject
        entries = roll&.of(plan["role"]).to_a.sort_by(&:pid).rotate((plan["pick"] * 10).to_i)
        hit = entries.first(plan["times"]).select { |entry| signal(entry.pid, plan["signal"]) }
        hit.any?
      end
    end

    # Kills the next mold while it starts.
    class KillUpcomingMold < Fault
      named "kill upcoming mold", weight: 6, evidence: /\Ageneration\.discarded\z/

      def self.plan(random) = { "after" => (random.rand * 0.3).round(3) }

      def inject
        stage.signal("USR2")
        newcomer = scene.wait(3) { upcoming } or return false
        sleep plan["after"]
        signal(newcomer, "KILL")
      end

      private

      def upcoming
        molds = roll&.of(mold_role).to_a
        molds.max_by(&:generation).pid if molds.size > 1
      end
    end

    # Kills the intermediate process of a double fork, which lives only for an instant.
    class KillMiddle < Fault
      named "kill middle process", weight: 6, evidence: /\A(fork|worker)\.failed\z/

      WATCH = 1.0 # seconds

      def inject
        (mold = victim(mold_role) and worker = victim(worker_role)) or return false
        signal(worker.pid, "KILL")
        kill_children_of(mold.pid)
      end

      private

      # A child of a mold is about to be adopted by another process.
      def kill_children_of(mold)
        deadline = Chaos.now + WATCH
        while Chaos.now < deadline
          child = File.read("/proc/#{mold}/task/#{mold}/children").split.first
          return signal(child.to_i, "KILL") if child
        end
      rescue SystemCallError
        false
      end
    end
  end
end
