# frozen_string_literal: true

module Pando
  module ForkSafety
    module Libraries
      # ActiveRecord's connections, of all roles and shards.
      module ActiveRecordPools
        MEMORY = /\A(?:|:memory:|file::memory:.*|file:.*mode=memory.*)\z/
        private_constant :MEMORY

        class << self
          # Closes them; each opens again when it is needed. Databases in memory would be lost, so they stay open.
          #
          # @yieldreturn [Boolean] whether to close the connections to this database; without a block: all
          def disconnect
            pools.each do |pool|
              config = pool.db_config
              next if in_memory?(config) || (block_given? && !yield(config))

              pool.disconnect!
            end
            nil
          end

          # @return [Array<ActiveRecord::DatabaseConfigurations::DatabaseConfig>] the databases that this process is
          #   connected to
          def connected = pools.select(&:connected?).map(&:db_config)

          # Opens a connection to each of these databases and leaves it in its pool.
          def connect(configs)
            pools.each { |pool| pool.with_connection(&:verify!) if configs.include?(pool.db_config) }
            nil
          end

          # @return [Boolean] whether a connection of any thread is in a transaction
          def transaction?
            loaded? && pools.any? { |pool| pool.connections.any?(&:transaction_open?) }
          end

          # @return [Hash{String => Integer}] connections of each pool that has fewer, by the name of its database
          def smaller_than(threads)
            return {} unless loaded?

            pools.to_h { |pool| [pool.db_config.name, pool.size] }.select { |_, size| size&.<(threads) }
          end

          private

          # A suite or a gem may define the name without the library.
          def loaded?
            defined?(ActiveRecord::VERSION::STRING) && !ActiveRecord.autoload?(:Base) &&
              defined?(ActiveRecord::Base.connection_handler)
          end

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
