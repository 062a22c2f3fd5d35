# frozen_string_literal: true

require "pando/cluster/serializable"
require "pando/cluster/message"
require "pando/events"

module Pando
  module Cluster
    # Job nodes that take nothing new: what runs ends, and then they wait for the stop that whoever said so is about to
    # send. Holds for those too that are born later. Workers that serve requests are not concerned.
    #
    # Owned by the monitor.
    #
    # @api private
    class Quiet
      extend Serializable

      serialize_as "quiet", begun: :flag

      # @param pools [Enumerable<Pool>]
      def initialize(pools)
        @pools = pools
        @begun = false
        @told = {}.compare_by_identity
      end

      def begun? = @begun

      # @return [Boolean] whether there are any nodes
      def concerns_anybody? = nodes.any?

      # @param reason [String]
      def begin(reason)
        Events.emit("nodes.quiet", reason: reason) unless @begun
        @begun = true
      end

      # No stop has come, and is not to come. A runner is quiet for good: its node is replaced.
      # @param reason [String]
      def undo(reason)
        return unless @begun

        @begun = false
        Events.emit("nodes.resumed", reason: reason)
        nodes.each { |pool| @pools.about(pool) { replace(pool) } }
        @told.clear
      end

      # Called at each turn of the monitor's loop. Who is being born hears it first of all.
      # @param ending [Boolean] the server is about to stop: no load balancer must notice that first to keep jobs away
      def reconcile(ending)
        self.begin("the server stops") if ending && !@begun && concerns_anybody?
        return unless @begun

        @told.delete_if { |child, _| child.gone? }
        nodes.each { |pool| pool.roster.workers.each { |child| tell(child) } }
      end

      private

      def nodes = @pools.select { |pool| pool.options.jobs }
      def tell(child) = @told[child] ||= child.order(Message.new(:quiet))

      def replace(pool)
        told, unborn = pool.roster.workers.select { |child| @told[child] }.partition(&:ready?)
        told.each { |child| pool.rollout.renew(child, "it was quiet") }
        unborn.each { |child| child.replacement_reason ||= "it was quiet" if child.starting? }
      end
    end
  end
end
