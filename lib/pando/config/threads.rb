# frozen_string_literal: true

module Pando
  class Config
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

      # @param config [Config]
      # @return [Integer]
      def self.count(config)
        return 1 unless config.reactor
        return config.threads unless config.threads == :auto

        [RUBY_VERSION < "3.2" ? BLIND : MOST, LIMIT / workers(config)].min.clamp(1, nil)
      end

      # @param config [Config]
      # @return [Integer] the most requests that a worker of any pool may have at once
      def self.most(config) = [config, *config.pools.map(&:config)].map { |one| count(one) }.max

      # The variable is not meant for Pando alone, so it is no error in direct mode.
      #
      # @param config [Config]
      # @return [String, nil] why it cannot have so many
      def self.obstacle(config)
        unless config.reactor || config.threads == 1 || config.source(:threads) == VARIABLE
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
  end
end
