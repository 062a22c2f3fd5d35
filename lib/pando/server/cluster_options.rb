# frozen_string_literal: true

require "pando/cluster/options"
require "pando/errors"
require "pando/server/kinds"
require "pando/server/launch"
require "pando/slow_entry"
require "pando/sys/control_group"

module Pando
  class Server
    # Translates a configuration into options of the cluster, which knows nothing of it. Made by a Payload, which
    # changes what is different in its own pool.
    class ClusterOptions
      def self.of(config) = new(config).options

      # @param folders [Array<String>] where the Pando of a new release is
      # @return [Cluster::AdminSupervisor::Spec, nil] nil: the configuration has no `admin` line
      def self.admin(config, *folders)
        return if config.admin.empty?

        listen = config.admin.map do |one|
          one.kind == :unix && one.mode.nil? ? Config::Listen.parse(one.to_s, mode: 0o600) : one
        end
        Cluster::AdminSupervisor::Spec.new(listen, *Launch.admin(config, *folders))
      end

      # @param terms [Symbol, Hash, false] as in the configuration
      # @return [Cluster::Canary::Criteria, nil]
      def self.canary(terms)
        return unless terms

        terms = Config::Types::Canary::DEFAULT if terms == :auto
        Cluster::Canary::Criteria.new(**terms).faster(TimeScale.read)
      end

      def initialize(config)
        @config = config
      end

      def options
        Cluster::Options.new(
          workers: @config.workers, auto_workers: auto?,
          surge: @config.rollout_surge, unavailable: @config.rollout_unavailable,
          oom_score_adj: @config.oom_score_adj || nil, services: @config.services.keys,
          health: @config.health || @config.health_live, control: control, memory: memory,
          canary: ClusterOptions.canary(@config.rollout_canary), admin: ClusterOptions.admin(@config),
          pidfile: @config.pidfile, restart_file: @config.restart_file,
          refork_failures: @config.refork_failures, prefault: @config.refork_prefault, mold: @config.mold,
          poison: poison, slow: SlowEntry::Terms.of(@config),
          **deadlines
        )
      end

      private

      def deadlines
        { boot_timeout: @config.boot_timeout, spawn_timeout: @config.spawn_timeout, stop_timeout: @config.stop_timeout,
          drain: @config.drain, drain_delay: @config.drain_delay,
          grace: @config.timeout_grace, give_up_after: @config.give_up_after,
          longest_request: @config.timeout && (@config.timeout + @config.timeout_grace),
          longest_wait: @config.header_timeout, check_timeout: (@config.self_check_timeout if @config.self_check) }
      end

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

      # The default is a convenience: the server starts without it where it cannot be had.
      def control
        path = @config.control
        Cluster::Control::Spec.new(path: path, required: !@config.default?(:control)) if path
      end
    end

    # The scale of a load test: one of its seconds stands for many of production. `refork :auto` and the canary divide
    # their seconds by it (docs/lab.md). Read in the monitor.
    module TimeScale
      VARIABLE = "PANDO_TIME_SCALE"

      # @return [Float] 1.0 unless the environment says otherwise
      # @raise [ConfigError] not a number of 1 or more
      def self.read(environment = ENV)
        scale = Float(environment.fetch(VARIABLE, "1"), exception: false)
        return scale if scale && scale >= 1 && scale.finite?

        raise ConfigError, "#{VARIABLE} must be a number of 1 or more, and is #{environment[VARIABLE].inspect}: " \
                           "set it for load tests only, or leave it out"
      end
    end
  end
end
