# frozen_string_literal: true

module Pando
  module Swarm
    module Runners
      class Sidekiq
        # Runs of this process that ended while Redis was not there to be told what has become of their jobs: a node
        # that was forked in between goes on with another run. Nobody else knows which of those jobs are done, so the
        # Beat of the next run tells it first of all.
        #
        # Children have none: they inherit the list of a process that lives, and tells it by itself.
        module FormerRuns
          class << self
            # @param holdings [Holdings]
            def add(holdings)
              ours << holdings
            end

            # @return [Boolean] whether we are still to say what became of its jobs
            def include?(identity) = ours.any? { |holdings| holdings.identity == identity }

            # Once more.
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
