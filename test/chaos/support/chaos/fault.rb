# frozen_string_literal: true

require "chaos/roll"

module Chaos
  # The kinds of faults.
  module Faults
    # Of a fault that meets the pool of job nodes, where another one of its name meets that of the workers.
    module OfNodes
      def name = plan["role"] ? "#{self.class.superclass.label} #{plan["role"]}" : self.class.label

      private

      def worker_role = "node"
      def mold_role = "node mold"
    end
  end

  # One thing that goes wrong: it is injected, and lifted when its time is over. What exactly it does is planned from
  # the seed; whom it hits depends on who lives when it comes.
  class Fault
    class << self
      # @param nodes [Boolean] also those that meet job nodes
      # @return [Array<Class>] all kinds
      def kinds(nodes: false) = all.select { |kind| nodes || !kind.of_nodes? }

      # @param name [String] in the schedule and the report
      # @param weight [Integer] how often, beside the others
      # @param evidence [Regexp, nil] of the server's events: that it felt it
      def named(name, weight:, evidence: nil)
        @label = name
        @weight = weight
        @evidence = evidence
        Fault.all << self
      end
      attr_reader :label, :weight, :evidence

      def all = @all ||= []
      def of_nodes? = include?(Faults::OfNodes)

      # @return [Hash{String => Object}] what the seed decides
      def plan(_random) = {}

      # @return [String, nil] why it is not possible on this machine
      def obstacle(_stage) = nil
    end

    attr_reader :plan

    # @param scene [Scene] @param plan [Hash{String => Object}] see Fault.plan
    def initialize(scene, plan)
      @scene = scene
      @plan = plan
    end

    def name = self.class.label

    # Seconds that it lasts.
    def seconds = plan.fetch("seconds", 0)

    # @return [Object] false: there was nobody to hit
    def inject = raise(NoMethodError, "#{self.class} must say what it does")

    def lift; end

    # What may happen to requests meanwhile, beside those of processes that die of it: statuses, :closed, :cut.
    def failures = []

    def to_s = "#{name} #{plan.map { |key, value| "#{key}=#{value}" }.join(" ")}".strip

    private

    attr_reader :scene

    def stage = scene.stage
    def roll = scene.roll

    # The two roles of the pool that it is about.
    def worker_role = "worker"
    def mold_role = "mold"

    # @return [Roll::Entry, nil] somebody of this role
    def victim(role = plan["role"])
      candidates = roll&.of(role).to_a.select { |one| role == mold_role || one.serving? }.sort_by(&:pid)
      candidates[(plan.fetch("pick", 0) * candidates.size).to_i]
    end

    # @return [Boolean] whether there was such a process still; and not stopped already: another fault will wake that
    def signal(pid, name)
      return false if name == "STOP" && stopped?(pid)

      scene.chronicle.strike(pid) unless %w[CONT STOP].include?(name)
      Process.kill(name, pid)
      true
    rescue Errno::ESRCH, Errno::ENOENT
      false
    end

    def stopped?(pid) = File.read("/proc/#{pid}/stat")[/\) (\S)/, 1] == "T"
  end
end

# Those of nodes are variants of the others.
%w[faults faults/nodes].each { |folder| Dir[File.join(__dir__, folder, "*.rb")].each { |file| require file } }
