# frozen_string_literal: true

module Pando
  module Swarm
    module Runners
      class Sidekiq
        # Runs of this process that ended while Redis was down, so it does not know the outcome of their jobs. A node
        # that was forked in between goes on with another run. No other process knows which of those jobs are done, so
        # the Beat of the next run reports it first of all.
        #
        # A child has none: the list that it inherits belongs to its parent, which is alive and reports by itself.
        module FormerRuns
          class << self
            # @param holdings [Holdings]
            def add(holdings)
              ours << holdings
            end

            # @return [Boolean] whether we must still report the outcome of its jobs
            def include?(identity) = ours.any? { |holdings| holdings.identity == identity }

            # Tries to report once more.
            def release
              ours.reject! { |holdings| holdings.release(0) }
            end

            private

            def ours
              unless @pid == Process.pid
                @pid = Process.pid
                @ours = []
              end
              @ours
            end
          end
        end
      end
    end
  end
end
