# frozen_string_literal: true

require "json"
require "pando/fork_safety/audit"
require "pando/swarm"
require "pando/swarm/checked_runner"
require "pando/sys"

module Pando
  module Swarm
    # Checks whether a runner keeps the rules for runners; for the tests of its author. It takes runners through their
    # life as a node does: create, start, quiet, stop; again in the same process; and once more in a child that was
    # forked in between, as in a refork.
    #
    # Runs in the process that calls it, and forks once. docs/swarm/custom.md has the rules and an example.
    module RunnerLint
      # As much of a Config::NodeKind as a Node reads.
      Kind = Struct.new(:name, :concurrency, :queues, :options)
      private_constant :Kind

      # @param work [#call, nil] gives the runner something to do: puts jobs where it takes them from. The lint then
      #   waits for progress
      # @param within [Numeric] seconds to wait for progress, and for the runner to come to rest
      # @param settle [Numeric] seconds that threads and descriptors have to disappear after the stop
      # @param name [String] @param concurrency [Integer] @param queues [Array<String>] @param options [Hash] what the
      #   runner finds in its node
      # @yieldparam node [Node] as for the block of a `node` line
      # @yieldreturn [Object] a new runner, each time
      # @return [Array<String>] the problems; empty: none was found
      def self.check(work: nil, within: 10, settle: 2, name: "lint", concurrency: 5, queues: %w[default], options: {},
                     &make)
        raise ArgumentError, "RunnerLint.check needs a block that makes a runner" unless make

        kind = Kind.new(name, concurrency, queues, options)
        lifecycle = -> { Lifecycle.new(make, Node.new(kind, 0), work, within, settle).check }
        first = lifecycle.call
        return first unless first.empty?

        second = lifecycle.call.map { |problem| "the second one in the same process: #{problem}" }
        second + in_child(&lifecycle).map { |problem| "in a forked process: #{problem}" }
      end

      # @return [Array<String>]
      def self.in_child
        reader, writer = IO.pipe
        child = fork do
          reader.close
          writer.write(JSON.generate(yield))
          writer.close
        ensure
          exit!
        end
        writer.close
        text = reader.read
        text.empty? ? ["the process ended without a report"] : JSON.parse(text)
      ensure
        reader.close
        Process.wait(child)
      end
      private_class_method :in_child

      # Takes one runner through its life, and adds the problems.
      #
      # @api private
      class Lifecycle
        # Optional methods, and the types of their answers.
        OPTIONAL = { done: [Integer], failed: [Integer], in_progress: [Integer], lag: [Integer, NilClass],
                     latency: [Numeric, NilClass], healthy?: [String, NilClass] }.freeze
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
        def check
          @before = Leftovers.new(@settle)
          check_creation
          check_start
          check_work if @work
          check_quiet
          check_stop
          @problems
        rescue Broken => e
          @problems << e.message
        end

        private

        def check_creation
          @runner = step("making it") { @make.call(@node) }
          missing = CheckedRunner::NEEDED.reject { |name| @runner.respond_to?(name) }
          raise Broken, "it lacks #{missing.join(", ")}" unless missing.empty?

          add(@before.list) { |left| "made and not yet started: #{left}" }
        end

        def check_start
          step("start") { @runner.start }
          ask
          check_health("right after start")
        end

        # @return [void]
        def check_work
          before = ask
          step("the work it was given") { @work.call }
          return if within_time? { ask > before }

          @problems << "progress did not grow within #{@within} s, although there was work"
        end

        def check_quiet
          seconds = timed { step("quiet") { @runner.quiet } }
          @problems << "quiet took #{seconds.round(1)} s, but must return at once" if seconds > AT_ONCE
          step("a second quiet") { @runner.quiet }
          raise Broken, "busy? is still true #{@within} s after quiet" unless within_time? { !@runner.busy? }

          ask
          check_health("after quiet")
        end

        def check_stop
          step("stop") { @runner.stop }
          add(@before.list) { |left| "after stop #{left}" }
        end

        # Calls everything that the node calls at each tick.
        # @return [Integer] progress
        def ask
          busy = at_tick("busy?") { @runner.busy? }
          @problems << "busy? must be true or false, but is #{busy.inspect}" unless [true, false].include?(busy)
          OPTIONAL.each { |name, types| check_answer(name, types) if @runner.respond_to?(name) }
          progress = at_tick("progress") { @runner.progress }
          raise Broken, "progress must be an Integer, but is #{progress.inspect}" unless progress.is_a?(Integer)

          @problems << "progress fell from #{@progress} to #{progress}" if @progress && progress < @progress
          @progress = progress
        end

        # Pando would replace the node of a runner that reports a problem here. After `quiet` it must not report that
        # its threads have ended.
        def check_health(time)
          reason = @runner.healthy? if @runner.respond_to?(:healthy?)
          add(["healthy? says #{time}: #{reason}"]) if reason
        end

        def check_answer(name, types)
          said = at_tick(name) { @runner.public_send(name) }
          return if types.any? { |type| said.is_a?(type) }

          add(["#{name} must be #{types.join(" or ")}, but is #{said.inspect}"])
        end

        def at_tick(name, &block)
          result = nil
          seconds = timed { result = step(name, &block) }
          add(["#{name} took #{seconds.round(2)} s; Pando calls it at every tick"]) if seconds > CHEAP
          result
        end

        def step(name)
          yield
        rescue StandardError, NotImplementedError => e
          raise Broken, "#{name} raised #{e.class}: #{e.message} (#{e.backtrace&.first})"
        end

        def add(found)
          @problems |= found.map { |one| block_given? ? yield(one) : one }
        end

        def within_time?
          deadline = Sys.now + @within
          until yield
            return false if Sys.now > deadline

            sleep(PAUSE)
          end
          true
        end

        def timed
          began = Sys.now
          yield
          Sys.now - began
        end
      end

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
          deadline = Sys.now + @settle
          loop do
            left = threads + descriptors + signals
            return left if left.empty? || Sys.now > deadline

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
          current = handlers
          changed = SIGNALS.reject { |name| current[name].equal?(@handlers[name]) || current[name] == @handlers[name] }
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
      end
    end
  end
end
