# frozen_string_literal: true

require "pando/cluster/options"
require "pando/errors"
require "pando/server/kinds"
require "pando/server/launch"
require "pando/slow_entry"
require "pando/sys/control_group"

module Pando
  class Server
    # Translates a configuration into options of the cluster, which knows nothing of it. Made by a Payload.
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

      def initialize(config)
        @config = config
      end

      def options
        Cluster::Options.new(
          workers: @config.workers, auto_workers: auto?,
          surge: @config.rollout_surge, unavailable: @config.rollout_unavailable,
          oom_score_adj: @config.oom_score_adj || nil, services: @config.services.keys,
          health: @config.health || @config.health_live, control: control, memory: memory, canary: canary,
          admin: ClusterOptions.admin(@config),
          pidfile: @config.pidfile, restart_file: @config.restart_file,
          refork_failures: @config.refork_failures, trainee: @config.jit == :trainee, prefault: @config.refork_prefault,
          mold: @config.mold, poison: poison, slow: SlowEntry::Terms.of(@config),
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

      def canary
        wanted = canary_terms or return
        wanted = Config::Types::Canary::DEFAULT if wanted == :auto
        Cluster::Canary::Criteria.new(**wanted).faster(TimeScale.read)
      end

      def canary_terms = @config.rollout_canary

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

    # As ClusterOptions, for a pool of some paths. Its first mold is forked from that of the first pool, so that the
    # application is in memory once.
    class PathOptions < ClusterOptions
      def options
        super.tap do |options|
          options.shared = true
          options.services = []
          options.trainee = false
        end
      end

      private

      def auto? = false
    end

    # As ClusterOptions, for one kind of job nodes.
    class NodeOptions < ClusterOptions
      def self.of(config, kind) = new(config, kind).options

      def initialize(config, kind)
        super(config)
        @kind = kind
      end

      def options
        super.tap do |options|
          options.workers = @kind.count
          options.exclusive = @kind.exclusive
          options.mold = :keep # to fork another one, a node would have to end its jobs
          options.surge = @kind.surge
          options.unavailable = @kind.unavailable
          options.shared = @kind.shared
          options.jobs = true
          options.slow = nil
          options.health = nil
          options.services = [] unless first?
        end
      end

      private

      def auto? = false
      def canary_terms = @kind.canary

      # Services run once, however many kinds of worker there are.
      def first? = Kinds.names(@config).first == @kind.name

      def deadlines = super.merge(longest_request: @kind.quiet_timeout, longest_wait: 0.0, drain: 0.0)

      def memory = super.tap { |limits| limits.worker = @kind.memory }
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
