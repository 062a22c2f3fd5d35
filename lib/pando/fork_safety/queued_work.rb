# frozen_string_literal: true

require "pando/fork_safety/libraries/known"
require "pando/sys"

module Pando
  module ForkSafety
    # Work that libraries have queued inside this process and that would be lost with it: jobs, mails, buffered
    # telemetry. The rows of the library table say how to find it, see {Libraries::Library#queues}.
    #
    # Call it in the main thread of a worker.
    module QueuedWork
      # Work that did not finish in time: the library, how many pieces, and their names.
      Dropped = Struct.new(:library, :pieces, :names)

      # Seconds between two checks.
      LOOK = 0.02
      # Once there was work, this many checks in a row must find none. A task that moves from a timer to an executor is
      # in neither for a moment, and a new executor is noticed a little later.
      CALM = 6
      # The most names to report for one library.
      NAMES = 5
      private_constant :LOOK, :CALM, :NAMES

      class << self
        # Whether a library has work that is running, waiting or due now.
        def pending?(by = Sys.now)
          Libraries::Known.loaded.any? { |library| pieces(library, by).positive? }
        end

        # Waits until the work is done.
        #
        # @param by [Float] monotonic seconds; does not wait for work that is scheduled for later
        # @param on_failure [#call, nil] called with the library's name and the error when a block of its row raises
        # @yield at each check
        def wait(by, on_failure = nil)
          telling(on_failure) do
            left = pending?(by) ? CALM : 0
            while left.positive? && Sys.now < by
              yield if block_given?
              sleep(LOOK)
              left = pending?(by) ? CALM : left - 1
            end
          end
        end

        # Waits as {wait} does, then flushes buffered data. What it finds then may have begun after the last look: it is
        # waited for as well. Work that is scheduled for later stays the same.
        #
        # @param flush_within [Float, nil] seconds for the flushes of one look; nil: all of the time
        # @return [Array<Dropped>] the work that would be lost now
        def finish(by, on_failure = nil, flush_within: nil, &look)
          before = nil
          loop do
            wait(by, on_failure, &look)
            left = telling(on_failure) { unfinished([by, *(Sys.now + flush_within if flush_within)].min) }
            return left if left.empty? || left == before || Sys.now >= by

            before = left
          end
        end

        private

        def unfinished(by)
          Libraries::Known.loaded.filter_map { |library| flush(library, by) || dropped(library) }
        end

        def telling(on_failure)
          @on_failure = on_failure
          yield
        ensure
          @on_failure = nil
        end

        def pieces(library, by)
          count = library.queue(:count) or return 0

          guard(library, 0) { count.call(by) }
        end

        # Runs in a thread, because a flush may hang on a server that does not answer.
        def flush(library, by)
          block = library.queue(:flush) or return

          thread = Thread.new { guard(library, nil) { block.call([by - Sys.now, 0].max) } }
          return if thread.join([by - Sys.now, LOOK].max)

          thread.kill
          Dropped.new(library.name, 1, ["a flush that did not end"])
        end

        def dropped(library)
          block = library.queue(:names) or return

          names = guard(library, []) { block.call }
          Dropped.new(library.name, names.size, summary(names)) if names.any?
        end

        def summary(names)
          kinds = names.tally.map { |name, count| count == 1 ? name : "#{count} #{name}" }
          kinds.size > NAMES ? [*kinds.first(NAMES), "#{kinds.size - NAMES} other kinds"] : kinds
        end

        # The rows use private parts of the libraries, which the next version may change.
        def guard(library, otherwise)
          yield
        rescue StandardError => e
          @on_failure&.call(library.name, e)
          otherwise
        end
      end
    end
  end
end
