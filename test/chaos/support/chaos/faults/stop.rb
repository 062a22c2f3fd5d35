# frozen_string_literal: true

module Chaos
  module Faults
    # Stops a process for a moment and resumes it.
    class Freeze < Fault
      named "freeze", weight: 10

      ROLES = %w[worker worker mold reactor service].freeze

      def self.plan(random)
        { "role" => self::ROLES.sample(random: random), "seconds" => (0.1 + (random.rand * 2.5)).round(2),
          "pick" => random.rand.round(3) }
      end

      def name = "#{super} #{plan["role"]}"

      def inject
        pid = victim&.pid
        @pid = pid if pid && signal(pid, "STOP")
      end

      def lift = @pid && signal(@pid, "CONT")
    end

    # Stops a process until the server detects it.
    class Hang < Fault
      named "hang", weight: 3, evidence: /\A(worker|mold|reactor)\.killed\z|\Arequest\.killed\z/

      # Seconds until the detection, at most: an idle worker's heartbeat and header_timeout; a turn of the reactor; an
      # order to fork or, for a mold that is being replaced, the trial, the watch and its shutdown. Plus the time that
      # the detection takes.
      LIMITS = { "worker" => 15 + 5 + 2, "reactor" => 15 + 3, "mold" => 3 + 4 + 2 + 5 + 2 }.freeze
      # For a mold that boots.
      BOOT_LIMIT = 20 + 2
      # A process that was replaced before the detection has its stop_timeout from then on.
      FAREWELL = 10 + 2

      def self.plan(random) = { "role" => self::LIMITS.keys.sample(random: random), "pick" => random.rand.round(3) }

      def name = "#{super} #{plan["role"]}"

      # The server checks only molds that it needs.
      def inject
        found = victim
        return false unless found && signal(found.pid, "STOP")

        @pid = found.pid
        @limit = found.serving? ? limit : BOOT_LIMIT
        worker = plan["role"] == mold_role && victim(worker_role) and signal(worker.pid, "KILL")
        true
      end

      def lift
        return unless @pid

        return if gone_within?(@limit) || (leaving? && gone_within?(FAREWELL))

        scene.chronicle.violate("#{plan["role"]} #{@pid} hangs, and nobody did anything for #{@limit} s")
        signal(@pid, "KILL")
      end

      private

      def gone_within?(seconds) = scene.patiently(seconds) { !File.exist?("/proc/#{@pid}") }
      def leaving? = roll&.entries&.find { |one| one.pid == @pid }&.state == "leaving"
      def limit = self.class::LIMITS.fetch(plan["role"])
    end
  end
end
