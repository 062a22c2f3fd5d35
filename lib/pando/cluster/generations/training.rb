# frozen_string_literal: true

require "pando/events"

module Pando
  module Cluster
    class Generations
      # The trainee: one worker that is given each request as long as it is idle, until the first generations have been
      # forked from it. Else every worker would warm up by itself, and all but one of them for nothing. Who is busy is
      # passed over, so that no request waits for the trainee beside an idle worker.
      #
      # Owned by Generations, in the monitor.
      #
      # @api private
      class Training
        # @return [Child, nil]
        attr_reader :trainee

        # @param sources [Sources] who may be forked
        # @param wanted [#call] whether one is to be trained now
        def initialize(roster, sources, wanted)
          @roster = roster
          @sources = sources
          @wanted = wanted
        end

        # Called at each turn of the monitor's loop.
        def reconcile
          return relieve unless @wanted.call
          return if @trainee && @sources.fit?(@trainee)

          worker = @sources.best
          train(worker) if worker
        end

        private

        # There is no trainee any more: it is one of them again.
        def relieve
          @trainee.order(Message.new(:step_back)) if @trainee&.ready?
          @trainee = nil
        end

        # In direct mode the kernel calls them in the order in which they came to a listener: it is the first when all
        # others have left their places. Behind the reactor only a former trainee has to be told.
        def train(worker)
          @roster.ready_workers.each { |other| other.order(Message.new(:step_back)) unless other.equal?(worker) }
          return unless worker.order(Message.new(:train))

          @trainee = worker
          Events.emit("trainee.chosen", **worker.identity, requests: worker.requests)
        end
      end
    end
  end
end
