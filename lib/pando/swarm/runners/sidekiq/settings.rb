# frozen_string_literal: true

module Pando
  module Swarm
    module Runners
      class Sidekiq
        # Counts jobs and failures, as the outermost of Sidekiq's server middlewares, and as one of its error handlers:
        # some jobs fail before any middleware sees them (the class is missing, the job is not JSON).
        #
        # One per run of a runner. Sidekiq's threads write; the main thread reads.
        class JobCounter
          # Sidekiq makes a new one for each job. Its configuration outlives runs and forks, so the middleware looks up
          # the current JobCounter.
          class Middleware
            def call(_job, _payload, _queue)
              yield
              JobCounter.current&.job_done
            rescue ::Sidekiq::JobRetry::Skip
              JobCounter.current&.job_done # the job ended early, and has done the rest itself
              raise
            end
          end

          ERROR_HANDLER = lambda do |_error, context, _config|
            JobCounter.current&.job_failed if context[:job] || context[:jobstr]
          end

          class << self
            # @return [JobCounter, nil]
            attr_accessor :current
          end

          # @return [Integer] jobs that have ended, and how many of them have failed
          attr_reader :done, :failed

          def initialize
            @done = @failed = 0
            @lock = Mutex.new
          end

          def job_done = @lock.synchronize { @done += 1 }

          def job_failed
            @lock.synchronize do
              @done += 1
              @failed += 1
            end
          end
        end

        # Sidekiq's configuration. A process and its children have one. It is made at the first start, by the blocks of
        # Sidekiq.configure_server, and frozen by Sidekiq from then on. Before each run, this module renews what the run
        # needs.
        module Settings
          class << self
            # Runs in a node, before it starts.
            # @return [Sidekiq::Config]
            def prepare(concurrency, queues, pool)
              @config ||= configure
              size_pool(pool || concurrency)
              @config.concurrency = concurrency
              @config.queues = queues unless queues.empty?
              renew_events
              forget_last_run
              @config
            end

            # Whether we fetch, and not Sidekiq Pro or a fetch class that the app has chosen.
            def reliable? = @config[:fetch_class] == ReliableFetch

            # So a wrong URL shows when the cluster boots. A process that has reached Redis once, or was forked from one
            # that has, waits for a Redis that is down.
            # @raise [StandardError]
            def reach_redis
              @config.redis { |connection| connection.call("PING") } unless @reached
              @reached = true
            end

            # The pools stay, and connect again on their next use.
            def close_connections
              [@config, *@config.capsules.each_value].each { |one| one.redis_pool.reload(&:close) }
            end

            private

            def configure
              config = nil
              ::Sidekiq.configure_embed { |made| config = made }
              config[:fetch_class] ||= ReliableFetch
              config[:timeout] = 0 # seconds; the node has waited already when it stops Sidekiq
              config.server_middleware { |chain| chain.prepend(JobCounter::Middleware) }
              config.error_handlers << JobCounter::ERROR_HANDLER
              @events = config[:lifecycle_events].transform_values(&:dup)
              config
            end

            # As large as the mold's kind with the highest concurrency needs it: a pool never changes its size.
            def size_pool(size)
              @config.concurrency = size
              @config.default_capsule.redis_pool
            end

            # Sidekiq removes the blocks that it has called.
            def renew_events
              @config[:lifecycle_events].each { |event, blocks| blocks.replace(@events.fetch(event, [])) }
            end

            # Each run has a name of its own in Redis. Sidekiq gives one name to a process and all its children (7.0 to
            # 8.1; these variables are not public).
            def forget_last_run
              names = %i[@@identity @@process_nonce] & ::Sidekiq::Component.class_variables
              names.each { |name| ::Sidekiq::Component.remove_class_variable(name) }
              Thread.current["sidekiq_tid"] = nil
              ::Sidekiq::Processor::WORK_STATE.clear
              reset_active_job
            end

            # Sidekiq's Active Job adapter notes that Sidekiq was quieted, and never that it has started again: jobs
            # that can be continued would then end at each of their steps.
            def reset_active_job
              return unless defined?(::ActiveJob::QueueAdapters::SidekiqAdapter)

              adapter = ::ActiveJob::QueueAdapters::SidekiqAdapter
              return unless adapter.class_variable_defined?(:@@stopping)

              adapter.class_variable_set(:@@stopping, false) # rubocop:disable Style/ClassVars -- it is Sidekiq's
            end
          end
        end
      end
    end
  end
end
