# frozen_string_literal: true

require "pando/cluster/control/spec"
require "pando/cluster/memory/limits"
require "pando/cluster/poison"
require "pando/cluster/canary/criteria"
require "pando/server/time_scale"
require "pando/sys/control_group"

module Pando
  class Server
    # A configuration as the cluster, which knows nothing of it, wants to be told.
    #
    # @api private
    class ClusterOptions
      # @param config [Config]
      # @return [Cluster::Options]
      def self.of(config) = new(config).options

      def initialize(config)
        @config = config
      end

      # @return [Cluster::Options]
      def options
        Cluster::Options.new(
          workers: @config.workers, auto_workers: auto?,
          surge: @config.rollout_surge, unavailable: @config.rollout_unavailable,
          oom_score_adj: @config.oom_score_adj || nil, services: @config.services.keys,
          health: @config.health || @config.health_live, control: control, memory: memory, canary: canary,
          pidfile: @config.pidfile, restart_file: @config.restart_file,
          refork_failures: @config.refork_failures, trainee: trainee, prefault: @config.refork_prefault,
          mold: @config.mold, poison: poison,
          **deadlines
        )
      end

      private

      def deadlines
        { boot_timeout: @config.boot_timeout, spawn_timeout: @config.spawn_timeout, stop_timeout: @config.stop_timeout,
          drain_delay: @config.drain_delay, grace: @config.timeout_grace, give_up_after: @config.give_up_after,
          longest_request: @config.timeout && (@config.timeout + @config.timeout_grace),
          longest_wait: @config.header_timeout, check_timeout: (@config.self_check_timeout if @config.self_check) }
      end

      def canary
        terms = canary_terms or return
        Cluster::Canary::Criteria.new(**(terms == :auto ? Config::Types::Canary::DEFAULT : terms)).faster(TimeScale.read)
      end

      def canary_terms = @config.rollout_canary

      # By whom all others come to their JIT is trained however reforks come about.
      def trainee = @config.jit == :trainee ? :once_at_least : @config.refork_trainee

      def auto? = @config.entries(:workers).first&.value == :auto

      def memory
        Cluster::Memory::Limits.new(worker: @config.memory_worker, hard: @config.memory_hard,
                                    total: @config.memory_total,
                                    pressure: @config.memory_pressure,
                                    group: (@config.memory_group if Sys::ControlGroup.new.memory_limit))
      end

      def poison
        Cluster::Poison::Terms.new(deaths: @config.poison_deaths, within: @config.poison_within,
                                   refuse: @config.poison_refuse)
      end

      # The default is a convenience, and so it is done without where it does not fit.
      def control
        path = @config.control
        Cluster::Control::Spec.new(path: path, required: !@config.default?(:control)) if path
      end
    end
  end
end
