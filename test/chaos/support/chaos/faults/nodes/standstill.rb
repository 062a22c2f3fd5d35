# frozen_string_literal: true

module Chaos
  module Faults
    # Stops a node for a moment.
    class FreezeNode < Freeze
      include OfNodes

      named "freeze node", weight: 8

      ROLES = ["node", "node", "node mold"].freeze
    end

    # Stops a node until the server detects it.
    class HangNode < Hang
      include OfNodes

      named "hang node", weight: 4, evidence: /\A(worker|mold)\.killed\z|\Anode\.stuck\z/

      # The heartbeat timeout of an idle node; that of an order to fork, see Hang. Plus the time that the detection
      # takes.
      LIMITS = { "node" => 15 + 2, "node mold" => Hang::LIMITS.fetch("mold") }.freeze
      # A busy node is detected because its jobs make no progress.
      AT_WORK = 3 + 2 + 2

      private

      # The node is stopped by now, and so is its progress report.
      def limit
        roll&.entries&.find { |one| one.pid == @pid }&.state == "busy" ? AT_WORK : super
      end
    end

    # The node's jobs never end, but its threads keep ticking, and its main thread sends heartbeats.
    class StuckJobs < Fault
      include OfNodes

      named "stuck jobs", weight: 5, evidence: /\Anode\.stuck\z/

      # Its timeout and the grace, plus the time that the detection takes.
      LIMIT = 3 + 2 + 2

      def inject
        FileUtils.touch(stage.path("stall"))
        @file = scene.wait(3) { Dir[stage.path("stall.*")].first }
        File.unlink(@file) if @file
        !@file.nil?
      end

      # Another fault may have killed it, or may be about to.
      def lift
        FileUtils.rm_f(stage.path("stall"))
        return unless @file

        pid = @file[/\d+\z/].to_i
        return if scene.patiently(LIMIT) { gone?(pid) }

        scene.chronicle.violate("the jobs of node #{pid} make no progress, and nobody did anything for #{LIMIT} s")
      end

      private

      def gone?(pid) = !File.exist?("/proc/#{pid}")
    end

    # A hook never returns in a process that is to replace a node.
    class StuckNodeHook < StuckHook
      include OfNodes

      named "stuck hook of nodes", weight: 4, evidence: superclass.evidence
    end
  end
end
