# frozen_string_literal: true

module Pando
  module ForkSafety
    module Libraries
      # ActiveRecord's connections, of all roles and shards.
      #
      # @api private
      module ActiveRecordPools
        MEMORY = /\A(?:|:memory:|file::memory:.*|file:.*mode=memory.*)\z/
        private_constant :MEMORY

        class << self
          # Closes them; each is made anew when it is needed. A database in memory would be gone, and stays.
          #
          # @yieldparam config [ActiveRecord::DatabaseConfigurations::DatabaseConfig]
          # @yieldreturn [Boolean] whether to close the connections to this database; all without a block
          # @return [nil]
          def disconnect
            pools.each do |pool|
              config = pool.db_config
              next if in_memory?(config) || (block_given? && !yield(config))

              pool.disconnect!
            end
            nil
          end

          # @return [Array<ActiveRecord::DatabaseConfigurations::DatabaseConfig>] of the databases that this process has
          #   a connection to
          def connected = pools.select(&:connected?).map(&:db_config)

          # Makes a connection to each of these databases, which is left in its pool.
          #
          # @param configs [Array<ActiveRecord::DatabaseConfigurations::DatabaseConfig>]
          # @return [nil]
          def connect(configs)
            pools.each { |pool| pool.with_connection(&:verify!) if configs.include?(pool.db_config) }
            nil
          end

          private

          def pools
            handler = ActiveRecord::Base.connection_handler
            return handler.connection_pool_list(:all) if Gem::Version.new(ActiveRecord::VERSION::STRING) >= SINCE_ALL

            handler.respond_to?(:all_connection_pools) ? handler.all_connection_pools : handler.connection_pool_list
          end

          def in_memory?(config) = config.adapter == "sqlite3" && MEMORY.match?(config.database.to_s)
        end

        # connection_pool_list takes a role, or :all.
        SINCE_ALL = Gem::Version.new("7.1.0")
        private_constant :SINCE_ALL
      end
    end
  end
end
