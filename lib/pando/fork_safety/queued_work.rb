# frozen_string_literal: true

require "pando/fork_safety/libraries/known"

module Pando
  module ForkSafety
    # Work that libraries have queued inside this process and that would be lost with it: jobs, mails, buffered
    # telemetry. The rows of the library table say how it is found, see {Libraries::Declaration#queues}.
    #
    # Called in the main thread of a worker.
    #
    # @api private
    module QueuedWork
      # What a library could not do in time: its name, how many pieces, and what they are.
      Dropped = Struct.new(:library, :pieces, :names)

      # Seconds between two looks.
      LOOK = 0.02
      # Looks in a row that must find nothing, once there was something: a task that passes from a timer to an executor
      # is in neither for a moment, and a new executor is noticed a little later.
      CALM = 6
      # Names of one library's pieces that are told.
      NAMES = 5
      private_constant :LOOK, :CALM, :NAMES

      class << self
        # Whether a library has work that runs, waits or is due now.
        #
        # @return [Boolean]
        def pending?(by = now)
          Libraries::Known.loaded.any? { |library| pieces(library, by).positive? }
        end

        # Waits until the work is done.
        #
        # @param by [Float] until when, monotonic seconds; work that is scheduled for later is not waited for
        # @param on_failure [#call, nil] is told the library's name and the error when a block of its row raises
        # @yield at each look
        # @return [nil]
        def wait(by, on_failure = nil)
          telling(on_failure) do
            left = pending?(by) ? CALM : 0
            while left.positive? && now < by
              yield if block_given?
              sleep(LOOK)
              left = pending?(by) ? CALM : left - 1
            end
          end
        end

        # As {wait}; then what is buffered is flushed.
        #
        # @return [Array<Dropped>] what would be lost now
        def finish(by, on_failure = nil, &look)
          wait(by, on_failure, &look)
          telling(on_failure) do
            Libraries::Known.loaded.filter_map { |library| flush(library, by) || dropped(library) }
          end
        end

        private

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

        # A flush may hang on a server that does not answer.
        # @return [Dropped, nil]
        def flush(library, by)
          block = library.queue(:flush) or return

          thread = Thread.new { guard(library, nil) { block.call([by - now, 0].max) } }
          return if thread.join([by - now, LOOK].max)

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

        # What the rows look at is partly private to the libraries, and may be otherwise in the next version.
        def guard(library, otherwise)
          yield
        rescue StandardError => e
          @on_failure&.call(library.name, e)
          otherwise
        end

        def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
      end
    end
  end
end
