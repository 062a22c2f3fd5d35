# frozen_string_literal: true

module Chaos
  module Faults
    # A node stands still for a moment.
    class FreezeNode < Freeze
      include OfNodes

      named "freeze node", weight: 8

      ROLES = ["node", "node", "node mold"].freeze
    end

    # A node stands still until the server finds that out.
    class HangNode < Hang
      include OfNodes

      named "hang node", weight: 4, evidence: /\A(worker|mold)\.killed\z|\Anode\.stuck\z/

      # An idle one's heartbeat; an order to fork, see Hang. And what it takes to look.
      LIMITS = { "node" => 15 + 2, "node mold" => Hang::LIMITS.fetch("mold") }.freeze
      # One that was at work: its jobs make no progress.
      AT_WORK = 3 + 2 + 2

      private

      # It has stopped by now, and so has what it says of itself.
      def limit
        roll&.entries&.find { |one| one.pid == @pid }&.state == "busy" ? AT_WORK : super
      end
    end

    # Its jobs come to no end any more, but its threads tick on, and its main thread beats.
    class StuckJobs < Fault
      include OfNodes

      named "stuck jobs", weight: 5, evidence: /\Anode\.stuck\z/

      # Its timeout and the grace after it, and what it takes to look.
      LIMIT = 3 + 2 + 2

      def inject
        FileUtils.touch(stage.path("stall"))
        @file = scene.wait(3) { Dir[stage.path("stall.*")].first }
        File.unlink(@file) if @file
        !@file.nil?
      end

      # Somebody else may end it, or have ended it.
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

    # A hook does not come back in one that is to take a node's place.
    class StuckNodeHook < StuckHook
      include OfNodes

      named "stuck hook of nodes", weight: 4, evidence: superclass.evidence
    end
  end
end
