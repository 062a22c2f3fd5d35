# frozen_string_literal: true

require "pando/fork_safety/audit/census"
require "pando/fork_safety/audit/growth"
require "pando/fork_safety/audit/inventory"
require "pando/fork_safety/audit/judge"
require "pando/fork_safety/audit/live_thread"
require "pando/fork_safety/audit/native_thread"
require "pando/fork_safety/audit/patterns"
require "pando/fork_safety/audit/report"
require "pando/fork_safety/audit/sites"
require "pando/fork_safety/descriptors"
require "pando/sys"

module Pando
  module ForkSafety
    # Looks at a process from below Ruby: which descriptors it has and whose they are, which threads
    # a fork would lose. Works in any process, with or without the server:
    #
    #   Pando::ForkSafety::Audit.begin          # before the application is loaded
    #   Pando::ForkSafety::Audit.trace          # if the lines that open IOs are to be known
    #   ...
    #   Pando::ForkSafety::Audit.census         # in the parent, just before a fork
    #   fork do
    #     puts Pando::ForkSafety::Audit.run(forks: true).findings
    #   end
    module Audit
      @outside = {}
      @census = nil

      class << self
        # What is open now was opened by whoever started this process: it is no fault of the
        # application's. To be called before the application is loaded.
        #
        # @return [nil]
        def begin
          @outside = Sys.descriptor_targets
          nil
        rescue SystemCallError
          nil
        end

        # Notes from now on where each IO is made; costs some microseconds for each one made, and
        # nothing else. Children go on.
        #
        # @return [nil]
        def trace = Sites.trace

        # Ends what {trace} began.
        # @return [nil]
        def untrace = Sites.pause

        # What this process has, for the child that it is about to fork.
        #
        # @return [nil]
        def census
          @census = Census.new
          nil
        end

        # @param forks [Boolean] whether this process is going to be forked: what it has itself
        #   opened is judged too then, and its threads
        # @param own [Array<IO, Integer>] descriptors that are the caller's business
        # @param keep [Array<String>] patterns of peers and paths to leave alone (see Patterns)
        # @param everything [Boolean] find the IO object of each descriptor, also of the harmless
        # @return [Report]
        def run(forks: true, own: [], keep: [], everything: false)
          began = Sys.now
          threads = forks ? LiveThread.all + NativeThread.all : []
          verdicts = threads.filter_map { |thread| (finding = thread.finding) && [finding, thread] }
          inventory = Inventory.new(own: numbers(own), outside: @outside, kept: kept(keep))
          verdicts = judge(inventory, forks, everything) + verdicts
          Report.new(verdicts: verdicts, descriptors: inventory.descriptors, threads: threads, seconds: Sys.now - began)
        rescue SystemCallError => e
          Report.new(verdicts: verdicts.to_a, threads: threads.to_a, seconds: Sys.now - began, error: e.message)
        end

        # The threads alone, in a process that is about to fork.
        #
        # @return [Report]
        def threads
          began = Sys.now
          threads = LiveThread.all + NativeThread.all
          verdicts = threads.filter_map { |thread| (finding = thread.finding) && [finding, thread] }
          Report.new(verdicts: verdicts, threads: threads, seconds: Sys.now - began)
        end

        # @param patterns [Array<String>] see Patterns
        # @return [Array<Integer>] the descriptors that were declared harmless, in code or by these
        # @raise [SystemCallError] /proc cannot be read
        def kept_numbers(patterns)
          Descriptors.kept_numbers | Patterns.new(patterns).numbers
        end

        # Cuts this process off from these descriptors, C code's too, without a word to the other side:
        # each keeps its number, a socket looks hung up, anything else is /dev/null.
        #
        # @param descriptors [Array<Descriptor>] of a {Report} of this process
        # @return [Integer] how many there still were
        # @raise [SystemCallError] if the process is out of descriptors
        def close(descriptors)
          Descriptors.cut(descriptors)
        end

        private

        def judge(inventory, forks, everything)
          compare(inventory.descriptors)
          judge = Judge.new(inventory, forks: forks)
          suspects = judge.suspects
          inventory.attribute(everything ? inventory.descriptors : suspects)
          judge.verdicts
        end

        def compare(descriptors)
          return unless @census&.inherited?

          descriptors.each { |one| one.shared_with = @census.sharers(one) if one.owner == :native && one.delicate? }
        end

        def numbers(ios) = ios.filter_map { |io| io.is_a?(Integer) ? io : io.fileno }

        def kept(patterns)
          numbers = Descriptors.kept_numbers
          patterns = Patterns.new(patterns)
          ->(one) { numbers.include?(one.number) || patterns.match?(one) }
        end
      end
    end
  end
end
