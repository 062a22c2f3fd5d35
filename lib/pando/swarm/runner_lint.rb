# frozen_string_literal: true

require "json"
require "pando/swarm/kind"
require "pando/swarm/node"
require "pando/swarm/runner_lint/life"

module Pando
  module Swarm
    # Checks whether a runner keeps the rules for runners; for the tests of its author. It takes runners through their
    # life as a node does: create, start, quiet, stop; again in the same process; and once more in a child that was
    # forked in between, as in a refork.
    #
    #     problems = Pando::Swarm::RunnerLint.check { MyRunner.new }
    #     assert_empty problems
    #
    # Runs in the process that calls it, and forks once. docs/swarm/custom.md has the rules.
    module RunnerLint
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
        text.empty? ? ["the process ended without a report"] : JSON.parse(text)
      ensure
        reader.close
        Process.wait(child)
      end
      private_class_method :in_child
    end
  end
end
