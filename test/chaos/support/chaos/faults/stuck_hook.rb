# frozen_string_literal: true

require "fileutils"

module Chaos
  module Faults
    # A hook of the application never returns.
    class StuckHook < Fault
      named "stuck hook", weight: 6, evidence: /\A(worker|mold)\.(killed|failed)\z|\Acheck\.failed\z/

      HOOKS = %w[before_fork after_mold_fork after_worker_fork after_worker_ready self_check].freeze

      def self.plan(random)
        { "hook" => HOOKS.sample(random: random), "seconds" => (0.3 + (random.rand * 4.5)).round(2),
          "pick" => random.rand.round(3) }
      end

      def inject
        FileUtils.touch(stage.path("stuck", plan["hook"]))
        worker = victim(worker_role) and signal(worker.pid, "KILL")
        stage.signal("USR2")
        true
      end

      def lift = FileUtils.rm_f(stage.path("stuck", plan["hook"]))
    end
  end
end
