# frozen_string_literal: true

require "etc"
require "pando/config/setting"
require "pando/config/types"
require "pando/platform"
require "pando/sys/control_group"
require "pando/sys/memory"

module Pando
  class Config
    # How many CPUs the server may use: those that it may be scheduled on (sched_getaffinity(2)), or fewer if a control
    # group sets a quota, as in most containers.
    #
    # @api private
    module CPUs
      # @return [Integer] 1 or more, rounded up
      def self.count(group: Sys::ControlGroup.new) = [Etc.nprocessors, group.cpu_quota&.ceil].compact.min.clamp(1, nil)
    end

    # How many requests a worker may have at once. Read in the mold, which tells the monitor, and in workers.
    #
    # @api private
    module Threads
      VARIABLE = "RAILS_MAX_THREADS"
      # With `threads :auto`.
      MOST = 16
      # The same on a Ruby that does not say which thread has the interpreter lock (before 3.2).
      BLIND = 5
      # Threads of all workers together: the reactor has no more lanes.
      LIMIT = 1024

      def self.count(config)
        return 1 unless config.reactor
        return config.threads unless config.threads == :auto

        [RUBY_VERSION < "3.2" ? BLIND : MOST, LIMIT / workers(config)].min.clamp(1, nil)
      end

      # @return [Integer] the most requests that a worker of any pool may have at once
      def self.most(config) = [config, *config.pools.map(&:config)].map { |one| count(one) }.max

      # The number of the variable, or as many as the workers of all pools can have. A pool with a number of its own
      # keeps it. The variable is not meant for Pando alone, so it is no error in direct mode.
      #
      # @param config [Config] whose threads come from the variable @param lines [Array<PoolLine>]
      # @return [Integer, Symbol]
      def self.fitting(config, lines)
        return 1 unless config.reactor
        return :auto if config.threads == :auto

        fixed, others = lines.partition { |line| line.says?(:threads) }
        room = LIMIT - fixed.map { |line| line.apply(config) }.sum { |own| count(own) * workers(own) }
        sharing = [config, *others.map { |line| line.apply(config) }].sum { |own| workers(own) }
        [config.threads, room / sharing].min.clamp(1, nil)
      end

      # @return [String, nil] why it cannot have so many
      def self.obstacle(config)
        unless config.reactor || config.threads == 1
          return "needs the reactor: remove `reactor false`, or set threads 1"
        end

        pools = [config, *config.pools.map(&:config)]
        return if (pools.one? && count(config) == 1) || pools.sum { |one| count(one) * workers(one) } <= LIMIT
        return "and those of the pools are more than #{LIMIT} in all workers: a server has no more" if pools.size > 1

        "must be #{LIMIT / workers(config)} at most with #{config.workers} workers (and #{config.rollout_surge} more " \
          "during a rollout): a server has no more than #{LIMIT} threads"
      end

      def self.workers(config) = (config.workers + config.rollout_surge).clamp(1, nil)
      private_class_method :workers
    end

    # The limit at which workers are killed, beside that of a pool or node at which they are replaced.
    #
    # @api private
    module HardLimit
      # @param config [Config] with the memory_worker of one pool or node
      # @return [String, nil] why the two cannot be
      def self.obstacle(config)
        wrong = Settings[:memory_hard].check.call(config.memory_hard, config)
        "needs a higher limit: memory hard: #{wrong}" if wrong
      end
    end

    # The table of all settings, in groups and in the order of docs/configuration.md.
    #
    # @api private
    module Settings
      @groups = {}
      @by_name = {}

      # The variables that name the environment, in order of precedence.
      ENVIRONMENT_VARIABLES = %w[RAILS_ENV RACK_ENV APP_ENV].freeze

      # The check of settings that only the reactor can obey; a value that is nil or false switches them off.
      NEEDS_REACTOR = lambda { |value, config|
        "needs the reactor, but the config says `reactor false`" if value && !config.reactor
      }

      class << self
        # @return [Hash{String => Array<Setting>}] by the group's title
        attr_reader :groups

        # Declares a group: its block calls Settings.setting.
        def group(title, &block)
          @groups[@title = title] = []
          instance_eval(&block)
        end

        # Declares a setting, see Setting.
        def setting(name, **declaration)
          @by_name[name] = Setting.new(name, **declaration)
          @groups.fetch(@title) << @by_name[name]
        end

        def all = @by_name.values

        def [](name)
          @by_name[name]
        end

        # @return [Hash{Symbol => Setting}] the settings that are keywords of another one, by their keyword
        def keywords_of(name)
          all.select { |setting| setting.within == name }.to_h { |setting| [setting.keyword, setting] }
        end

        # @return [Array<Symbol>] the methods of the config file that set a value
        def file_names
          (all.reject(&:flag_only?).reject(&:within).map(&:name) + all.filter_map(&:within)).uniq
        end
      end
    end
  end
end

require "pando/config/settings/serving"
require "pando/config/settings/memory"
require "pando/config/settings/faults"
require "pando/config/settings/http"
require "pando/config/settings/observability"
