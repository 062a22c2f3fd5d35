# frozen_string_literal: true

require "pando/sys"

module Pando
  module Cluster
    module Reactor
      # What the workers behind a reactor are at, for the reports of those who wait. Owned by the {Supervisor}.
      #
      # @api private
      class Jobs
        # Requests that are named.
        NAMED = 3

        def initialize(roster)
          @roster = roster
        end

        # @return [Integer] workers that serve
        def workers = @roster.ready_workers.size

        # The same value twice: in between no worker has finished or begun a request.
        # @return [Array, nil] nil: some worker is idle, or there is none
        def standstill
          jobs = @roster.ready_workers.map { |worker| [worker.pid, worker.row.busy_since, worker.requests] }
          jobs if jobs.any? && jobs.all? { |_, since, _| since }
        end

        # @return [String, nil] "GET /orders", "GET /orders (2), POST /cart"; nil: no worker is at a request
        def to_line
          counts = @roster.ready_workers.filter_map { |worker| worker.job[:request] }.tally
          return if counts.empty?

          named = counts.max_by(NAMED) { |_, count| count }
          rest = counts.values.sum - named.sum(&:last)
          line = named.map { |request, count| count > 1 ? "#{request} (#{count})" : request }.join(", ")
          rest.positive? ? "#{line}, and #{rest} more" : line
        end
      end
    end
  end
end
