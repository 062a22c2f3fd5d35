# frozen_string_literal: true

require "pando/config"

module Pando
  class Server
    # The settings that only a restart changes, because the reactor reads them at its start: their values as text. So
    # they can be compared with a later configuration, also after an upgrade of the monitor. Made by Payload, in the
    # monitor.
    class StartSettings
      OF_REACTOR = Config::Settings.all.select(&:reactor?).map(&:name).freeze
      OF_POOL = { "paths:" => :paths.to_proc, "max_queue:" => ->(pool) { pool.config.max_queue },
                  "queue_timeout:" => ->(pool) { pool.config.queue_timeout } }.freeze
      # Whether there is a reactor.
      MODE = "reactor"
      # Its word in an upgrade's state.
      RECORD = "start_setting"

      class << self
        def of(config)
          settings = [MODE, *OF_REACTOR].to_h { |name| [name.to_s, text(config.public_send(name))] }
          pools = config.pools.flat_map do |pool|
            OF_POOL.map { |keyword, read| [of_pool(keyword, pool.name), text(read.call(pool))] }
          end
          new({ **settings, **pools.to_h })
        end

        # @return [StartSettings, nil] nil: an older Pando wrote the state
        def from_state(state)
          values = state.all(RECORD).to_h { |record| [record.text(:name), record.bytes(:value)] }
          new(values) if values.any?
        end

        def of_pool(keyword, pool) = "#{keyword} of pool #{pool}"

        private

        def text(value) = value.inspect.b
      end

      # @return [Hash{String => String}]
      attr_reader :values

      def initialize(values)
        @values = values
      end

      def to_state(state) = values.each { |name, value| state.add(RECORD, name: name, value: value) }

      # These settings in another mode.
      def in_mode_of(other) = StartSettings.new({ **values, MODE => other.values.fetch(MODE, values[MODE]) })

      # @return [Array<String>] what a restart with that configuration would change
      def changed_in(config)
        later = StartSettings.of(config).values
        names = (values.keys & later.keys).reject { |name| values[name] == later[name] }
        names -= OF_REACTOR.map(&:name) unless values[MODE] == "true"
        names + config.pools.map(&:name).reject { |name| pool?(name) }.map { |name| "pool #{name}" }
      end

      private

      def pool?(name) = values.key?(StartSettings.of_pool(OF_POOL.keys.first, name))
    end
  end
end
