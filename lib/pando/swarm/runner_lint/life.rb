# frozen_string_literal: true

require "pando/swarm/runner_lint/leftovers"

module Pando
  module Swarm
    module RunnerLint
      # Takes one runner through its life, and notes the problems.
      #
      # @api private
      class Life
        METHODS = %i[start quiet stop busy? progress].freeze
        # Optional methods, and the types of their answers.
        OPTIONAL = { done: [Integer], failed: [Integer], in_progress: [Integer], lag: [Integer, NilClass],
                     healthy?: [String, NilClass] }.freeze
        AT_ONCE = 1 # second: the limit for "returns at once", on a busy machine
        CHEAP = 0.1 # seconds: the limit for a method that Pando calls at every tick
        PAUSE = 0.01

        # A step failed, so the later steps are impossible.
        class Broken < StandardError; end

        def initialize(make, node, work, within, settle)
          @make = make
          @node = node
          @work = work
          @within = within
          @settle = settle
          @problems = []
          @progress = nil
        end

        # @return [Array<String>]
        def lead
          @before = Leftovers.new(@settle)
          born
          started
          work if @work
          quieted
          stopped
          @problems
        rescue Broken => e
          @problems << e.message
        end

        private

        def born
          @runner = step("making it") { @make.call(@node) }
          missing = METHODS.reject { |name| @runner.respond_to?(name) }
          raise Broken, "it lacks #{missing.join(", ")}" unless missing.empty?

          note(@before.list) { |left| "made and not yet started: #{left}" }
        end

        def started
          step("start") { @runner.start }
          ask
          check_health("right after start")
        end

        # @return [void]
        def work
          before = ask
          step("the work it was given") { @work.call }
          return if patient? { ask > before }

          @problems << "progress did not grow within #{@within} s, although there was work"
        end

        def quieted
          seconds = timed { step("quiet") { @runner.quiet } }
          @problems << "quiet took #{seconds.round(1)} s, but must return at once" if seconds > AT_ONCE
          step("a second quiet") { @runner.quiet }
          raise Broken, "busy? is still true #{@within} s after quiet" unless patient? { !@runner.busy? }

          ask
          check_health("after quiet")
        end

        def stopped
          step("stop") { @runner.stop }
          note(@before.list) { |left| "after stop #{left}" }
        end

        # Calls everything that the node calls at each tick.
        # @return [Integer] progress
        def ask
          busy = quickly("busy?") { @runner.busy? }
          @problems << "busy? must be true or false, but is #{busy.inspect}" unless [true, false].include?(busy)
          OPTIONAL.each { |name, types| check(name, types) if @runner.respond_to?(name) }
          progress = quickly("progress") { @runner.progress }
          raise Broken, "progress must be an Integer, but is #{progress.inspect}" unless progress.is_a?(Integer)

          @problems << "progress fell from #{@progress} to #{progress}" if @progress && progress < @progress
          @progress = progress
        end

        # Pando would replace the node of a runner that reports a problem here. After `quiet` it must not report that
        # its threads have ended.
        def check_health(time)
          reason = @runner.healthy? if @runner.respond_to?(:healthy?)
          note(["healthy? says #{time}: #{reason}"]) if reason
        end

        def check(name, types)
          said = quickly(name) { @runner.public_send(name) }
          return if types.any? { |type| said.is_a?(type) }

          note(["#{name} must be #{types.join(" or ")}, but is #{said.inspect}"])
        end

        def quickly(name, &block)
          result = nil
          seconds = timed { result = step(name, &block) }
          note(["#{name} took #{seconds.round(2)} s; Pando calls it at every tick"]) if seconds > CHEAP
          result
        end

        def step(name)
          yield
        rescue StandardError, NotImplementedError => e
          raise Broken, "#{name} raised #{e.class}: #{e.message} (#{e.backtrace&.first})"
        end

        def note(found)
          @problems |= found.map { |one| block_given? ? yield(one) : one }
        end

        def patient?
          deadline = now + @within
          until yield
            return false if now > deadline

            sleep(PAUSE)
          end
          true
        end

        def timed
          began = now
          yield
          now - began
        end

        def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
      end
    end
  end
end
