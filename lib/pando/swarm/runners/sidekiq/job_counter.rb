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
      end
    end
  end
end
