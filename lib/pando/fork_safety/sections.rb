# frozen_string_literal: true

require "pando/errors"
require "pando/native"

module Pando
  module ForkSafety
    # The sections in which no thread of this process may be copied by a fork, and the gate that a
    # fork closes in front of them.
    #
    # Two tables and no lock, since sections are entered often, in signal handlers too, and forks are
    # rare. Whoever enters writes down that it is inside and looks at the gate afterwards; whoever
    # forks closes the gate and looks who is inside afterwards: one of the two sees the other. Both
    # tables are changed by single calls, which the interpreter's lock makes whole.
    #
    # @api private
    module Sections
      # Seconds that a fork waits for the sections of other threads.
      PATIENCE = 1.0
      # Seconds between two looks.
      PAUSE = 0.001

      # How deep each thread is inside.
      INSIDE = {}.compare_by_identity
      # The threads that fork.
      FORKING = {}.compare_by_identity

      # Around Ruby's own fork. A command (spawn, system, backticks) is no copy of this process.
      module ForkHook
        def _fork = Sections.shut_out { super }
        def daemon(*) = Sections.shut_out { super }

        Process.singleton_class.prepend(self)
      end

      class << self
        # The end of a section, or of the wait for one.
        def leave(thread)
          depth = INSIDE[thread] or return
          depth > 1 ? INSIDE[thread] = depth - 1 : INSIDE.delete(thread)
        end

        # Who is inside already is waited for by the fork, and must not wait for it.
        def wait_at_gate(thread)
          until FORKING.empty? || FORKING.key?(thread) || INSIDE[thread] > 1
            leave(thread)
            sleep(PAUSE)
            INSIDE[thread] = 1
          end
        end

        # @yield forks, while nobody is inside
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

        # In the child: whoever was at the gate is not there any more.
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
          "for #{PATIENCE} s a thread has been inside of #{threads.map { |thread| line(thread) }.uniq.join(", ")}"
        end

        # Found when it is asked for, so that a section need not write it down.
        def line(thread)
          frames = thread.backtrace || []
          place = frames.rindex { |frame| frame.start_with?(__FILE__) && frame.match?(/\bprevent_fork'\z/) }
          caller = frames[place + 1] if place
          "Pando.prevent_fork at #{caller&.slice(/\A.+?:\d+/) || "an unknown line"}"
        end
      end
    end
  end

  # Runs a block during which this process is not forked: for a library that cannot bear it now. A fork by
  # another thread (by the server, by Kernel#fork or Process.daemon) waits for the block to end, but not for
  # long: then it fails with {ForkPrevented}, which names this line. Sections may be nested, and should be short.
  #
  #   Pando.prevent_fork { Codec.encode(frame) }
  #
  # @return [Object] what the block returns
  # @raise [ForkPrevented] from a fork by this thread itself, inside of the block
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
