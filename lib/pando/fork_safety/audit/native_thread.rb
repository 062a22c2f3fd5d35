# frozen_string_literal: true

require "pando/fork_safety/audit/native_libraries"
require "pando/fork_safety/audit/thread_stack"
require "pando/fork_safety/finding"

module Pando
  module ForkSafety
    module Audit
      # A thread of this process that Ruby did not start: it belongs to a native library. No child has it,
      # and a lock that it holds at the fork stays locked there for ever.
      class NativeThread
        TASKS = "/proc/self/task"
        private_constant :TASKS

        # @return [Array<NativeThread>] without Ruby's own threads, and those that end meanwhile
        def self.all
          rubys = Thread.list.filter_map(&:native_thread_id)
          strangers = Dir.children(TASKS).map(&:to_i) - rubys
          return [] if strangers.empty?

          stacks = ThreadStack.new
          settled(strangers.filter_map { |id| find(id, stacks) }, stacks)
        rescue SystemCallError
          []
        end

        def self.find(id, stacks)
          comm = File.read("#{TASKS}/#{id}/comm").chomp.scrub("?")
          object = stacks.object(id)
          new(id, comm, object) unless object ? stacks.ruby?(object) : rubyish?(comm)
        rescue SystemCallError
          nil # it has ended
        end
        private_class_method :find

        # Looks again at a thread that is running. A thread that Ruby has just ended still runs for a moment, under its
        # own name. Then it is gone, or Ruby keeps it for the next Thread.new, which its stack shows.
        def self.settled(threads, stacks)
          deadline = Sys.now + PATIENCE
          while !threads.all?(&:object) && Sys.now < deadline
            sleep(PAUSE)
            threads = threads.filter_map { |thread| thread.object ? thread : find(thread.id, stacks) }
          end
          threads
        end
        private_class_method :settled

        # Seconds.
        PATIENCE = 0.5
        PAUSE = 0.001
        private_constant :PATIENCE, :PAUSE

        # If the stack does not identify a thread, its name may. A thread with the name of the process, or with one that
        # Ruby gives ("file.rb:7", or "long_file_nam*" if that has more than 15 bytes), is most likely Ruby's.
        RUBYS_NAME = /:\d*\z|\A.{14}\*\z/
        private_constant :RUBYS_NAME

        def self.rubyish?(comm) = comm == File.read("/proc/self/comm").chomp.scrub("?") || comm.match?(RUBYS_NAME)
        private_class_method :rubyish?

        # @return [Integer] the kernel's id
        attr_reader :id
        # @return [String] what it calls itself, at most 15 bytes (PR_SET_NAME, prctl(2))
        attr_reader :comm
        # @return [String, nil] the shared object in which its stack begins
        attr_reader :object

        def initialize(id, comm, object)
          @id = id
          @comm = comm
          @object = object
          @known = NativeLibraries.find(comm, object)
        end

        # @return [String, nil] the library, if known
        def library = @known&.name || (object && File.basename(object))

        # @return [String, nil] why its loss is harmless
        def excuse = @known&.excuse

        # @return [String] the same in each run
        def label = ["native thread #{comm.sub(/\d+\z/, "").inspect}", *("of #{library}" if library)].join(" ")

        # @return [Finding, nil]
        def finding
          return if excuse

          message = "A #{label} is running: no forked process has it, and a lock that it holds stays locked there"
          Finding.new(:native_thread, subject: label, message: message, details: to_h)
        end

        # @return [Hash{Symbol => Object}] for JSON
        def to_h = { type: :native, comm: comm, library: library, object: object, excuse: excuse }.compact
      end
    end
  end
end
