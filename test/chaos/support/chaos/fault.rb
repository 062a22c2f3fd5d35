# frozen_string_literal: true

require "chaos/roll"
require "pando/sys/process_stat"

module Chaos
  # The kinds of faults.
  module Faults
    # For a fault of another pool that inherits from the one of the workers.
    module OfPool
      def name = plan["role"] ? "#{self.class.superclass.label} #{plan["role"]}" : self.class.label

      private

      def worker_role = Roll.called("worker", self.class.pool)
      def mold_role = Roll.called("mold", self.class.pool)
    end

    # Of the job nodes.
    module OfNodes
      include OfPool
    end

    # Of the pool for some paths.
    module OfApart
      include OfPool
    end
  end

  # One fault: it is injected, and removed when its time is over. The seed determines its plan. The affected process
  # depends on which ones are alive at that time.
  class Fault
    # No fault has this name.
    class Unknown < ArgumentError
    end

    class << self
      # @param pools [Array<String>] include those of these pools: Roll::NODES, Roll::APART
      # @return [Array<Class>] all kinds
      def kinds(pools = []) = all.select { |kind| kind.pool.nil? || pools.include?(kind.pool) }

      # @param labels [Array<String>, nil] nil: all kinds
      # @return [Array<Class>] the kinds with these names
      # @raise [Unknown] a name that none of them has, or no name
      def choose(labels, pools = [])
        all = kinds(pools)
        return all unless labels

        unknown = labels - all.map(&:label)
        return all.select { |kind| labels.include?(kind.label) } if unknown.empty? && labels.any?

        raise Unknown, "no such fault: #{unknown.join(", ")}. There are: #{all.map(&:label).join(", ")}"
      end

      # @param name [String] in the schedule and the report
      # @param weight [Integer] frequency relative to the others
      # @param evidence [Regexp, nil] names of events by which the server shows that it was affected
      def named(name, weight:, evidence: nil)
        @label = name
        @weight = weight
        @evidence = evidence
        Fault.all << self
      end
      attr_reader :label, :weight, :evidence

      def all = @all ||= []

      # @return [String, nil] nil: the main one
      def pool
        return Roll::NODES if include?(Faults::OfNodes)

        Roll::APART if include?(Faults::OfApart)
      end

      # @return [Hash{String => Object}] the parameters that the seed determines
      def plan(_random) = {}

      # @return [String, nil] why this machine does not support it
      def obstacle(_stage) = nil
    end

    attr_reader :plan

    # @param scene [Scene] @param plan [Hash{String => Object}] see Fault.plan
    def initialize(scene, plan)
      @scene = scene
      @plan = plan
    end

    def name = self.class.label

    # Duration in seconds.
    def seconds = plan.fetch("seconds", 0)

    # @return [Object] false: there was no process to affect
    def inject = raise(NoMethodError, "#{self.class} must say what it does")

    def lift; end

    # The expected failures of requests meanwhile, in addition to those of processes that end because of it: statuses,
    # :closed, :cut.
    def failures = []

    def to_s = "#{name} #{plan.map { |key, value| "#{key}=#{value}" }.join(" ")}".strip

    private

    attr_reader :scene

    def stage = scene.stage
    def roll = scene.roll

    # The two roles of the affected pool.
    def worker_role = "worker"
    def mold_role = "mold"

    # @return [Roll::Entry, nil] a process in this role
    def victim(role = plan["role"])
      candidates = roll&.of(role).to_a.select { |one| role == mold_role || one.serving? }.sort_by(&:pid)
      candidates[(plan.fetch("pick", 0) * candidates.size).to_i]
    end

    # @return [Boolean] whether there still was such a process, and it was not stopped already: another fault will
    #   resume that one
    def signal(pid, name)
      return false if name == "STOP" && stopped?(pid)

      scene.chronicle.strike(pid) unless %w[CONT STOP].include?(name)
      Process.kill(name, pid)
      true
    rescue Errno::ESRCH, Errno::ENOENT
      false
    end

    def stopped?(pid) = Pando::Sys::ProcessStat.read(pid)&.state == "T"
  end
end

# The faults of other pools are subclasses of the others.
%w[faults faults/nodes faults/pools].each do |folder|
  Dir[File.join(__dir__, folder, "*.rb")].each { |file| require file }
end
