# frozen_string_literal: true

require "pando/fork_safety/audit"
require "pando/sys"

module Pando
  module Swarm
    module RunnerLint
      # What a runner left in its process: threads, descriptors, signal handlers. It checks the same things as the audit
      # before a fork.
      #
      # @api private
      class Leftovers
        # Signals that a node handles itself.
        SIGNALS = %w[TERM QUIT INT HUP USR1 USR2 TTIN TSTP URG CHLD].freeze
        PAUSE = 0.02

        # @param settle [Numeric] seconds; a joined thread disappears only a moment later
        def initialize(settle)
          @settle = settle
          @threads = Thread.list
          @natives = natives.map(&:id)
          @descriptors = Sys.descriptor_targets
          @handlers = handlers
        end

        # @return [Array<String>] what is left after that time
        def list
          deadline = now + @settle
          loop do
            left = threads + descriptors + signals
            return left if left.empty? || now > deadline

            sleep(PAUSE)
          end
        end

        private

        def threads
          rubys = ForkSafety::Audit::LiveThread.all.reject { |one| @threads.include?(one.thread) || one.excuse }
          texts = rubys.map { |one| "#{one.label} is left (#{one.location || "of C code"})" }
          texts + natives.reject { |one| @natives.include?(one.id) }.map { |one| "a #{one.label} is left" }
        end

        def natives = ForkSafety::Audit::NativeThread.all.reject(&:excuse)

        def descriptors
          left = Sys.descriptor_targets.reject { |number, target| @descriptors[number] == target }
          left.map { |number, target| "descriptor #{number} is left: #{target}" }
        end

        def signals
          now = handlers
          changed = SIGNALS.reject { |name| now[name].equal?(@handlers[name]) || now[name] == @handlers[name] }
          changed.map { |name| "the handler of #{name} has changed" }
        end

        # Ruby returns a handler only to a caller that sets another one.
        def handlers
          SIGNALS.to_h do |name|
            handler = trap(name, "DEFAULT")
            trap(name, handler || "DEFAULT")
            [name, handler]
          end
        end

        def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
      end
    end
  end
end
