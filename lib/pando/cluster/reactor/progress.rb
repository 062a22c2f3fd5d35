# frozen_string_literal: true

module Pando
  module Cluster
    module Reactor
      # Finds out that the server is alive and answers nobody, whatever the reason: requests wait, none is answered, and
      # a worker that is idle and shows that it lives takes none of them. How slow the machine is explains no such
      # thing: an idle worker looks for requests each time that it shows that it lives. While some are answered, it may
      # be that a fast worker gets them all.
      #
      # Owned by the {Supervisor}.
      #
      # @api private
      class Progress
        # An idle worker: the requests that it had served when it was first seen so, when it last showed that it lives,
        # and how many looks have found that it had done so again.
        Idler = Struct.new(:requests, :heartbeat, :beats)

        # Looks in a row that find the same worker idle beside waiting requests.
        PROOF = 2

        # @param roster [Roster::Selection]
        def initialize(roster)
          @roster = roster
          @idlers = {}
        end

        # @return [Boolean] whether the next look should come soon
        def doubtful? = @idlers.any?

        # @param waiting [Boolean] whether requests wait, none is answered, and the reactor turns
        # @return [Array<Child>] idle workers that should have taken some of them
        def look(waiting)
          before = @idlers
          @idlers = waiting ? idle_workers.to_h { |worker| [worker.pid, idler(worker, before[worker.pid])] } : {}
          idle_workers.select { |worker| @idlers[worker.pid]&.beats.to_i >= PROOF }
        end

        # What was found has been acted upon.
        def forget = @idlers = {}

        private

        def idle_workers = @roster.ready_workers.reject { |worker| worker.row.busy_since || worker.condemned? }

        def idler(worker, before)
          heartbeat = worker.row.heartbeat
          return Idler.new(worker.requests, heartbeat, 0) if before&.requests != worker.requests

          beats = heartbeat == before.heartbeat ? before.beats : before.beats + 1
          Idler.new(before.requests, heartbeat, beats)
        end
      end
    end
  end
end
