# frozen_string_literal: true

module Pando
  module Cluster
    # Quiets the job nodes: they finish running jobs, take no new ones, and wait for the stop that is about to follow.
    # Nodes that are forked later are quiet too. Workers that serve requests are not affected. Owned by the monitor.
    class Quiet
      extend Serializable

      serialize_as "quiet", begun: :flag

      REASON = "it was quiet"
      private_constant :REASON

      def initialize(pools)
        @pools = pools
        @begun = false
        @told = {}.compare_by_identity
      end

      def begun? = @begun

      def concerns_anybody? = nodes.any?

      def begin(reason)
        Events.emit("nodes.quiet", reason: reason) unless @begun
        @begun = true
      end

      # No stop follows. A quiet runner cannot resume, so its node is replaced.
      def undo(reason)
        return unless @begun

        @begun = false
        Events.emit("nodes.resumed", reason: reason)
        nodes.each { |pool| @pools.about(pool) { replace(pool) } }
        @told.clear
      end

      # A node that is starting reads the order first.
      # @param ending [Boolean] the server is about to stop: nodes need not wait for load balancers
      def reconcile(ending)
        self.begin("the server stops") if ending && !@begun && concerns_anybody?
        return unless @begun

        @told.delete_if { |child, _| child.gone? }
        nodes.flat_map { |pool| pool.roster.workers }.each do |child|
          @told[child] ||= child.order(Message.new(:quiet))
        end
      end

      private

      def nodes = @pools.select { |pool| pool.options.jobs }

      # If the mold is gone, one of them has to fork another one first.
      def replace(pool)
        pool.roster.workers.select { |child| @told[child] }.each do |child|
          if child.ready? && !pool.generations.released? then pool.rollout.renew(child, REASON)
          elsif child.ready? || child.starting? then child.replacement_reason ||= REASON
          end
        end
      end
    end
  end
end
