# frozen_string_literal: true

require "chaos/roll"

module Chaos
  # One thing that goes wrong: it is injected, and lifted when its time is over. What exactly it does is planned from
  # the seed; whom it hits depends on who lives when it comes.
  class Fault
    class << self
      # @return [Array<Class>] all kinds
      def kinds = @kinds ||= []

      # @param name [String] in the schedule and the report
      # @param weight [Integer] how often, beside the others
      # @param evidence [Regexp, nil] of the server's events: that it felt it
      def named(name, weight:, evidence: nil)
        @label = name
        @weight = weight
        @evidence = evidence
        Fault.kinds << self
      end
      attr_reader :label, :weight, :evidence

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

    # @return [Roll::Entry, nil] somebody of this role
    def victim(role = plan["role"])
      candidates = roll&.of(role).to_a.select { |one| role == "mold" || one.serving? }.sort_by(&:pid)
      candidates[(plan.fetch("pick", 0) * candidates.size).to_i]
    end

    # @return [Boolean] whether there was such a process still
    def signal(pid, name)
      scene.chronicle.strike(pid) unless %w[CONT STOP].include?(name)
      Process.kill(name, pid)
      true
    rescue Errno::ESRCH
      false
    end
  end
end

Dir[File.join(__dir__, "faults", "*.rb")].each { |file| require file }
