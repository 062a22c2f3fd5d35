# frozen_string_literal: true

require "pando/cluster/brief"

module Pando
  module Cluster
    class Generations
      # The workers that may be asked to fork the next mold. Owned by the monitor.
      #
      # @api private
      class Sources
        include Brief

        attr_writer :policy

        # @param policy [#manual?, #choose]
        # @param outdated [#call] tells which workers are to be replaced themselves
        # @param lost_threads [LostThreads]
        def initialize(roster, policy, outdated, lost_threads)
          @lost_threads = lost_threads
          @roster = roster
          @policy = policy
          @outdated = outdated
        end

        # @return [Child, nil] for a refork
        def best(except: []) = @policy.choose(preferred(except))

        # @param except [Array<Child>] that have been asked
        # @return [Child, nil] in place of one that is at a long request: one that is at none
        def free(except) = @policy.choose(unattached((asked - except).reject(&:engaged?)))

        # A worker at a long request lets us wait, and one that becomes the source of a mold parts with its long-lived
        # connections (WebSockets): another one is asked first, unless it has served much less.
        # @return [Array<Child>] those that one is chosen from
        def preferred(except = []) = unattached(rather(asked - except, &:engaged?))

        # @return [Integer] how many are not among these for their long requests
        def busy = (asked - preferred).count(&:engaged?)

        # Rather one that need not end a long job first; and once such a one has kept us waiting for nothing, no other.
        # @return [Child, nil] in place of a mold that is gone; nil: a cold boot is better than one who failed
        def heir(except = [])
          return if !@policy.manual? || @lost_threads.no_heir?

          willing = fit.reject(&:excluded_as_source?) - except
          free = willing.reject(&:engaged?)
          @policy.choose(free.any? || @roster.any?(&:declined_while_busy?) ? free : willing)
        end

        # @return [Array<Child>] those that need not end a long job first, if there are such
        def candidates
          all = asked
          all.all?(&:engaged?) ? all : all.reject(&:engaged?)
        end

        # @return [Boolean] it may be asked at any time
        def fit?(worker) = worker.ready? && may_fork?(worker) && !worker.excluded_as_source?

        private

        # Once all have failed as sources, the fault was likely elsewhere: all are asked again.
        def asked
          willing = fit.reject(&:excluded_as_source?)
          willing.empty? ? fit.each { |worker| worker.excluded_as_source = false } : willing
        end

        def unattached(workers) = rather(workers) { |worker| worker.connections.positive? }

        # Those of whom the block is not true, unless each of them has served much less than the others.
        def rather(workers, &block)
          others = workers.reject(&block)
          most = workers.map(&:requests).max.to_i
          others.any? { |worker| worker.requests * 2 >= most } ? others : workers
        end

        def fit = @roster.ready_workers.select { |worker| may_fork?(worker) }

        def may_fork?(worker)
          !@outdated.call(worker) && worker.fork_safe? && !worker.condemned? && !worker.declined_while_busy? &&
            !worker.declined && @lost_threads.fit?(worker)
        end
      end
    end
  end
end
