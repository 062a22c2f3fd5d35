# frozen_string_literal: true

require "pando/errors"
require "pando/native"

module Pando
  module ForkSafety
    # The sections during which a fork must not copy this process, and the gate that a fork closes in
    # front of them.
    #
    # There are two tables and no lock: threads enter sections often, also in signal handlers, and forks
    # are rare. A thread that enters first records that it is inside, and then checks the gate. A thread
    # that forks first closes the gate, and then checks for threads inside. So one of the two sees the
    # other. Each table changes in a single call, which the interpreter's lock makes atomic.
    module Sections
      # Seconds that a fork waits for the sections of other threads to end.
      PATIENCE = 1.0
      # Seconds between two checks.
      PAUSE = 0.001

      # How deep each thread is inside.
      INSIDE = {}.compare_by_identity
      # The threads that are forking.
      FORKING = {}.compare_by_identity

      class << self
        # Ends a section, or the wait for one.
        def leave(thread)
          depth = INSIDE[thread] or return
          depth > 1 ? INSIDE[thread] = depth - 1 : INSIDE.delete(thread)
        end

        # A fork waits for a thread that is already inside, so that thread must not wait for the fork.
        def wait_at_gate(thread)
          until FORKING.empty? || FORKING.key?(thread) || INSIDE[thread] > 1
            leave(thread)
            sleep(PAUSE)
            INSIDE[thread] = 1
          end
        end

        # Called by Callbacks::ForkHook.
        # @yield forks, while no thread is inside
        # @raise [ForkPrevented]
        def shut_out(&fork)
          thread = Thread.current
          return yield if FORKING.key?(thread)
          raise ForkPrevented, "this thread is inside of #{line(thread)}, and must not fork" if INSIDE.key?(thread)

          close_gate(thread, &fork)
        end

        private

        def close_gate(thread)
          forks = Sys.forks
          FORKING[thread] = true
          wait_until_empty
          yield
        ensure
          FORKING.delete(thread)
          forget unless Sys.forks == forks
        end

        # In the child, where the other threads do not exist.
        def forget
          INSIDE.clear
          FORKING.clear
        end

        def wait_until_empty
          deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + PATIENCE
          until (threads = INSIDE.keys.select(&:alive?)).empty?
            raise ForkPrevented, refusal(threads) if Process.clock_gettime(Process::CLOCK_MONOTONIC) > deadline

            sleep(PAUSE)
          end
        end

        def refusal(threads)
          "a thread has been inside of #{threads.map { |thread| line(thread) }.uniq.join(", ")} for #{PATIENCE} s"
        end

        # Found on demand, so that entering a section costs nothing more.
        def line(thread)
          frames = thread.backtrace || []
          place = frames.rindex { |frame| frame.start_with?(__FILE__) && frame.match?(/\bprevent_fork'\z/) }
          caller = frames[place + 1] if place
          "Pando.prevent_fork at #{caller&.slice(/\A.+?:\d+/) || "an unknown line"}"
        end
      end
    end
  end

  # Runs a block during which this process is not forked, for a library that must not be copied now. A fork by
  # another thread (by the server, by Kernel#fork or Process.daemon) waits up to a second for the block to end.
  # Then it fails with {ForkPrevented}, which names this line. Sections may be nested, and should be short.
  #
  #   Pando.prevent_fork { Codec.encode(frame) }
  #
  # @return [Object] what the block returns
  # @raise [ForkPrevented] this thread itself forks inside the block
  def self.prevent_fork
    thread = Thread.current
    inside = ForkSafety::Sections::INSIDE
    begin
      inside[thread] = (inside[thread] || 0) + 1
      entered = true # between these two lines no other thread and no exception can come
      ForkSafety::Sections.wait_at_gate(thread) unless ForkSafety::Sections::FORKING.empty?
      yield
    ensure
      ForkSafety::Sections.leave(thread) if entered
    end
  end
end
