# frozen_string_literal: true

require "pando/swarm/broker_watch"
require "pando/swarm/runners"
require "pando/swarm/runners/rails_app"

module Pando
  module Swarm
    module Runners
      # Sidekiq 7 and 8 in a node, as one of its embedding processes; docs/swarm/sidekiq.md.
      #
      # Made in a node and called on its main thread; the jobs run on Sidekiq's threads. What asks Redis while they run
      # does so on a thread of its own, for the main thread must not wait for a broker that is away.
      class Sidekiq
        # Seconds that a runner which does nothing may lack processors before it is called ill: Sidekiq replaces the
        # one that a job has broken by itself.
        SHORT = 10

        class << self
          # @return [Integer] the most jobs at once of any kind in this mold
          attr_reader :widest

          # In a mold of a cold boot: Redis is not asked for anything.
          # @raise [BootError]
          def load(kind)
            Runners.require_gem("sidekiq", "sidekiq")
            require "pando/swarm/runners/sidekiq/engine"
            integrate_rails if RequiredFiles.of(kind).any? { |file| file.end_with?(RequiredFiles::RAILS) }
            RequiredFiles.load(kind)
            disconnect
            @widest = [@widest, kind.concurrency].compact.max
          end

          # Of the jobs' connections those that we know of.
          def disconnect = (RailsApp.disconnect if defined?(::ActiveRecord::Base))

          private

          # Sidekiq, loaded before Rails, takes part in the application's start only if it is told to.
          def integrate_rails
            require "sidekiq/rails"
          rescue LoadError => e
            raise unless e.path == "rails"
          end
        end

        # @param node [Node]
        def initialize(node)
          @node = node
          @meter = Meter.new
          @engine = Engine.new(@meter, BrokerWatch.new(node))
        end

        def start
          @engine.start(kind: @node.kind, concurrency: @node.concurrency, queues: queues, pool: self.class.widest,
                        reliable: @node.options.fetch(:reliable, true))
        end

        # Sidekiq waits for its scheduler here, and that one perhaps for Redis.
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

        # Once it is quiet: as long as a processor is there, for one that has asked Redis may yet come back with a job.
        def busy? = (@quieting ? @engine.processors : in_progress).positive?
        def progress = @meter.done
        def done = @meter.done
        def failed = @meter.failed
        def in_progress = @engine.in_progress
        def lag = @engine.lag

        # @return [String, nil] why not
        def healthy? = (trouble unless @quieting)

        private

        # As Sidekiq's own configuration says it: "critical,3".
        def queues
          weights = @node.options[:weights]&.transform_keys(&:to_s)
          weights ? @node.queues.map { |name| "#{name},#{weights.fetch(name, 1)}" } : @node.queues
        end

        def trouble
          @short_since = @engine.missing_processors.zero? ? nil : @short_since || Sys.now
          if !@engine.beating?
            "Sidekiq's heartbeat has ended"
          elsif @short_since && Sys.now - @short_since > SHORT
            "#{@engine.missing_processors} of Sidekiq's processors have ended"
          end
        end
      end
    end
  end
end
