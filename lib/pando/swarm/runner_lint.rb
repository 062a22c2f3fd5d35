# frozen_string_literal: true

require "json"
require "pando/swarm/kind"
require "pando/swarm/node"
require "pando/swarm/runner_lint/life"

module Pando
  module Swarm
    # Checks whether a runner keeps to what `node` lines ask of it, for its author's tests. It leads runners through
    # their life as a node does: made, started, quieted, stopped; again in the same process; and once more in a child
    # that was forked in between, as a refork does it.
    #
    #     problems = Pando::Swarm::RunnerLint.check { MyRunner.new }
    #     assert_empty problems
    #
    # Runs in the process that calls it, and forks once. docs/swarm/custom.md says what a runner owes.
    module RunnerLint
      # @param work [#call, nil] gives the runner something to do: jobs, put where it takes them from. Progress is
      #   waited for then
      # @param within [Numeric] seconds that are waited for progress, and for rest
      # @param settle [Numeric] seconds that threads and descriptors have to go when the runner has stopped
      # @param name [String] @param concurrency [Integer] @param queues [Array<String>] @param options [Hash] what the
      #   runner finds in its node
      # @yieldparam node [Node] as for the block of a `node` line
      # @yieldreturn [Object] a new runner, each time
      # @return [Array<String>] what is wrong; empty: nothing was found
      def self.check(work: nil, within: 10, settle: 2, name: "lint", concurrency: 5, queues: %w[default], options: {},
                     &make)
        raise ArgumentError, "RunnerLint.check needs a block that makes a runner" unless make

        kind = Kind.new(name: name, concurrency: concurrency, queues: queues, options: options)
        life = -> { Life.new(make, Node.new(kind, 0), work, within, settle).lead }
        first = life.call
        return first unless first.empty?

        second = life.call.map { |problem| "the second one in the same process: #{problem}" }
        second + in_child(&life).map { |problem| "in a forked process: #{problem}" }
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
        text.empty? ? ["it has ended without a word"] : JSON.parse(text)
      ensure
        reader.close
        Process.wait(child)
      end
      private_class_method :in_child
    end
  end
end
