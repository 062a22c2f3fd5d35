# frozen_string_literal: true

require "pando/swarm/broker_watch"
require "pando/swarm/runners"
require "pando/swarm/runners/rails_app"

module Pando
  module Swarm
    module Runners
      # Runs Sidekiq 7 and 8 in a node, as an embedding process; docs/swarm/sidekiq.md.
      #
      # Made in a node and called on its main thread. The jobs run on Sidekiq's threads. Everything that queries Redis
      # while they run has a thread of its own, because the main thread must not wait for a broker that is down.
      class Sidekiq
        # Seconds that processors may be missing before the runner reports it: Sidekiq itself replaces a processor that
        # a job has broken.
        SHORT = 10

        class << self
          # @return [Integer] the largest concurrency of any kind in this mold
          attr_reader :widest

          # In a mold of a cold boot: Redis is not queried.
          # @raise [BootError]
          def load(kind)
            Runners.require_gem("sidekiq", "sidekiq")
            require "pando/swarm/runners/sidekiq/engine"
            integrate_rails if RequiredFiles.of(kind).any? { |file| file.end_with?(RequiredFiles::RAILS) }
            RequiredFiles.load(kind)
            disconnect
            @widest = [@widest, kind.concurrency].compact.max
          end

          # Closes the jobs' connections, as far as Pando knows them.
          def disconnect = (RailsApp.disconnect if defined?(::ActiveRecord::Base))

          private

          # Sidekiq is loaded before Rails, so it takes part in the app's start only if it is told to.
          def integrate_rails
            require "sidekiq/rails"
          rescue LoadError => e
            raise unless e.path == "rails"
          end
        end

        # @param node [Node]
        def initialize(node)
          @node = node
          @counter = JobCounter.new
          @engine = Engine.new(@counter, BrokerWatch.new(node))
        end

        def start
          @engine.start(kind: @node.kind, concurrency: @node.concurrency, queues: queues, pool: self.class.widest,
                        reliable: @node.options.fetch(:reliable, true))
        end

        # Sidekiq waits for its scheduler here, which may wait for Redis.
        def quiet
          @quieting ||= Thread.new { @engine.quiet }
          nil
        end

        def stop
          quiet
          @quieting.join
          @engine.stop
          self.class.disconnect
        end

        # After `quiet`, the runner is busy as long as a processor is left: one that has queried Redis may still return
        # with a job.
        def busy? = (@quieting ? @engine.processors : in_progress).positive?
        def progress = @counter.done
        def done = @counter.done
        def failed = @counter.failed
        def in_progress = @engine.in_progress
        def lag = @engine.lag

        # @return [String, nil] why it cannot go on
        def healthy? = (trouble unless @quieting)

        private

        # In the form of Sidekiq's own configuration: "critical,3".
        def queues
          weights = @node.options[:weights]&.transform_keys(&:to_s)
          weights ? @node.queues.map { |name| "#{name},#{weights.fetch(name, 1)}" } : @node.queues
        end

        def trouble
          @short_since = @engine.missing_processors.zero? ? nil : @short_since || Sys.now
          if !@engine.heartbeat_alive?
            "Sidekiq's heartbeat has ended"
          elsif @short_since && Sys.now - @short_since > SHORT
            "#{@engine.missing_processors} of Sidekiq's processors have ended"
          end
        end
      end
    end
  end
end
