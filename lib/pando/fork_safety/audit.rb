# frozen_string_literal: true

require "pando/fork_safety/audit/growth"
require "pando/fork_safety/audit/inventory"
require "pando/fork_safety/audit/judge"
require "pando/fork_safety/audit/live_thread"
require "pando/fork_safety/audit/native_thread"
require "pando/fork_safety/audit/sites"
require "pando/fork_safety/audit/timer_task"
require "pando/fork_safety/descriptors"
require "pando/sys"

module Pando
  module ForkSafety
    # Looks at a process from below Ruby: which descriptors it has and who owns them, and which threads
    # a fork would lose. It works in any process, with or without the server:
    #
    #   Pando::ForkSafety::Audit.begin          # before the app is loaded
    #   Pando::ForkSafety::Audit.trace          # to learn the lines that open IOs
    #   ...
    #   Pando::ForkSafety::Audit.census         # in the parent, just before a fork
    #   fork do
    #     puts Pando::ForkSafety::Audit.run(forks: true).findings
    #   end
    module Audit
      @outside = {}
      @census = nil

      class << self
        # What is open now belongs to the process that started this one, so it is not the app's fault.
        # Call it before the app is loaded.
        #
        # @return [nil]
        def begin
          @outside = Sys.descriptor_targets
          nil
        rescue SystemCallError
          nil
        end

        # From now on, records the line that makes each IO. That costs some microseconds per IO, and
        # nothing else. Children continue to trace.
        #
        # @return [nil]
        def trace = Sites.trace

        # Notes the descriptors of this process, for the child that it is about to fork.
        #
        # @return [nil]
        def census
          @census = Census.new
          nil
        end

        # @param forks [Boolean] whether this process is going to be forked. Then Pando also judges its
        #   threads and what it has opened itself
        # @param own [Array<IO, Integer>] descriptors that the caller takes care of
        # @param keep [Array<String>] patterns of peers and paths to leave alone, see {Descriptor#kept_by?}
        # @param everything [Boolean] also find the IO objects of harmless descriptors
        # @return [Report]
        def run(forks: true, own: [], keep: [], everything: false)
          began = Sys.now
          threads, verdicts = forks ? lost_threads : [[], []]
          own = own.filter_map { |io| io.is_a?(Integer) ? io : io.fileno }
          inventory = Inventory.new(own: own, outside: @outside, kept: Descriptors.kept_numbers, patterns: keep)
          verdicts = judge(inventory, forks, everything) + verdicts
          Report.new(verdicts: verdicts, descriptors: inventory.descriptors, threads: threads, seconds: Sys.now - began)
        rescue SystemCallError => e
          Report.new(verdicts: verdicts.to_a, threads: threads.to_a, seconds: Sys.now - began, error: e.message)
        end

        # Audits only the threads, in a process that is about to fork.
        #
        # @return [Report]
        def threads
          began = Sys.now
          threads, verdicts = lost_threads
          Report.new(verdicts: verdicts, threads: threads, seconds: Sys.now - began)
        end

        # @param patterns [Array<String>] see {Descriptor#kept_by?}
        # @return [Array<Integer>] the descriptors that code or these patterns declare harmless
        # @raise [SystemCallError] /proc cannot be read
        def kept_numbers(patterns)
          return Descriptors.kept_numbers if patterns.empty?

          found = Sys.descriptors.map { |row| Descriptor.new(row) }.select { |one| one.kept_by?(patterns) }
          Descriptors.kept_numbers | found.map(&:number)
        end

        # Cuts this process off from these descriptors, also those of C code, without telling the other
        # side. Each keeps its number. A socket looks hung up, anything else is /dev/null.
        #
        # @param descriptors [Array<Descriptor>] of a {Report} of this process
        # @return [Integer] how many there still were
        # @raise [SystemCallError] if the process is out of descriptors
        def close(descriptors)
          Descriptors.cut(descriptors)
        end

        private

        # @return [Array(Array<LiveThread, NativeThread>, Array<Array(Finding, Object)>)]
        def lost_threads
          threads = LiveThread.all + TimerTask.all + NativeThread.all
          [threads, threads.filter_map { |thread| (finding = thread.finding) && [finding, thread] }]
        end

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
      end
    end
  end
end
