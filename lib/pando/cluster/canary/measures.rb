# frozen_string_literal: true

require "pando/cluster/canary/records"
require "pando/mebibytes"
require "pando/sys/memory"
require "pando/sys/scheduler"

module Pando
  module Cluster
    module Canary
      # Whether a new worker has taken much more memory than the old ones had at its age: at most a page for each page
      # fault. Its own faults, which cost little to read, tell whether it is worth measuring.
      #
      # Its growth beyond its mold is measured, not its private memory. The first major collection writes to most of the
      # heap, which becomes private at once. But the mold had all of that before, so such a worker is no bigger; a
      # worker that leaks is.
      class MemoryCheck
        include Mebibytes

        # It may have this many times as many page faults, and these bytes more.
        TIMES = 1.5
        MORE = 8 * (1024**2)
        # Requests after which faults are read.
        AGES = Array.new(Curve::BANDS) { |step| 1 << step }.freeze

        def initialize(roster, source = Sys::Memory)
          @roster = roster
          @source = source
        end

        # @return [String, nil] what is wrong
        def complaint(worker, before)
          faults, most, age = worker.row.faults.zip(before.faults, AGES).reverse.find { |three| three.none?(&:zero?) }
          return unless faults && bytes(faults) > allowed(bytes(most), worker.row.prefaulted.first)

          requests = [worker.requests, age].max
          expected = bytes(most) * requests / age # at most: the first requests take most
          size = growth(worker)
          return unless size && size > expected + MORE

          "it has grown by #{mebibytes(size)} in #{requests} requests, those before by at most #{mebibytes(expected)}"
        end

        private

        def bytes(faults) = faults * Sys::Memory::PAGE

        # @param given [Integer] bytes that it was given at its start, and would otherwise have taken later
        def allowed(size, given) = (size * TIMES) + MORE + given

        def growth(worker)
          mold = @roster.molds.find { |one| one.generation == worker.generation } or return
          sizes = [worker, mold].map { |process| @source.anonymous(process.pid) }
          sizes.inject(:-) if sizes.all?
        end
      end

      # How long the workers on trial have waited for a CPU, per request. On a busy machine that is a part of each
      # request's time, comes in bursts, and says nothing about a generation.
      class CPUWait
        def initialize(source = Sys::Scheduler)
          @source = source
          @first = {}.compare_by_identity
        end

        # Counts the wait since the first call with each worker.
        def per_request(workers)
          waited = workers.sum do |worker|
            delay = @source.run_delay(worker.pid)
            delay ? delay - (@first[worker] ||= delay) : 0
          end
          waited / [workers.sum(&:requests), 1].max.to_f
        end
      end

      # The seconds in which requests could come. While the reactor stands still, or there is none, no request can come;
      # that says nothing about a generation, so such times do not count.
      class Stopwatch
        # The reactor shows a sign of life each second. Longer gaps than this many seconds count as a standstill.
        GAP = 2.5

        # @param heard_at [#call] given the current time, returns when the reactor last showed a sign of life; nil:
        #   there is no reactor
        def initialize(heard_at, now)
          @heard_at = heard_at
          @heard = now
          @seconds = 0.0
        end

        def read(now)
          heard = @heard_at.call(now)
          return @seconds if heard.nil? || heard <= @heard

          @seconds += heard - @heard if heard - @heard <= GAP
          @heard = heard
          @seconds
        end
      end

      # The time since a request last began or ended in any worker, although requests could come. On a silent server
      # nothing can be learned about a canary by waiting. Measured from the moment at which a generation begins.
      class Silence
        def initialize(roster, heard_at, now)
          @roster = roster
          @heard_at = heard_at
          @since = now
          @seen = activity([])
        end

        # A worker that was not in the last reading does not count.
        # @param except [Array<Child>] workers that are busy with requests of their own
        def read(now, except = [])
          activity = activity(except)
          changed = activity.any? { |worker, state| @seen.fetch(worker, state) != state }
          @since = now if changed || deaf?(now)
          @seen = activity
          now - @since
        end

        private

        def activity(except)
          (@roster.workers - except).to_h { |worker| [worker, [worker.requests, worker.row.busy_since]] }
                                    .compare_by_identity
        end

        # While the reactor stands still, or there is none, clients wait and cannot be seen.
        def deaf?(now)
          heard = @heard_at.call(now)
          heard.nil? || now - heard > Stopwatch::GAP
        end
      end
    end
  end
end
