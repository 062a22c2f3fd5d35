# frozen_string_literal: true

module Pando
  module Cluster
    class Generations
      # The workers that may be asked to fork the next mold. Owned by the monitor.
      #
      # @api private
      class Sources
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
        def best = @policy.choose(preferred)

        # A worker that becomes the source of a mold parts with its long-lived connections (WebSockets): one that has
        # none is asked first, unless it has served much less than the others.
        # @return [Array<Child>] those of the candidates that one is chosen from
        def preferred
          all = candidates
          return all if all.all? { |worker| worker.connections.zero? }

          most = all.map(&:requests).max.to_i
          free = all.select { |worker| worker.connections.zero? && worker.requests * 2 >= most }
          free.any? ? free : all
        end

        # Rather one that need not end a long job first; and once such a one has kept us waiting for nothing, no other.
        # @return [Child, nil] in place of a mold that is gone; nil: a cold boot is better than one who failed
        def heir
          return if !@policy.manual? || @lost_threads.no_heir?

          asked = fit.reject(&:barred?)
          free = asked.reject(&:engaged?)
          @policy.choose(free.any? || @roster.any?(&:tied_up?) ? free : asked)
        end

        # Once all have failed as sources, the fault was likely elsewhere: all are asked again.
        # Who is at a long job would let the others wait for its end.
        # @return [Array<Child>]
        def candidates
          asked = fit.reject(&:barred?)
          asked = fit.each { |worker| worker.barred = false } if asked.empty?
          asked.all?(&:engaged?) ? asked : asked.reject(&:engaged?)
        end

        # @return [Boolean] it may be asked at any time
        def fit?(worker) = worker.ready? && may_fork?(worker) && !worker.barred?

        private

        def fit = @roster.ready_workers.select { |worker| may_fork?(worker) }

        def may_fork?(worker)
          !@outdated.call(worker) && worker.fork_safe? && !worker.tied_up? && @lost_threads.fit?(worker)
        end
      end
    end
  end
end
