# frozen_string_literal: true

require "pando/fork_safety/audit/sites"
require "pando/fork_safety/pid_constants"

module Pando
  module Testing
    class Strict
      # Finds the random number generators that a fork copied and that were used afterwards: each child gets the same
      # numbers from them.
      class Draws
        # Prepended to Random's class: remembers the line that made a generator.
        module Made
          def new(...)
            super.tap { |generator| Draws.sites[generator] = ForkSafety::Audit::Sites.line(caller_locations(1)) }
          end
        end

        @sites = {}.compare_by_identity # a WeakMap would hold the lines weakly too

        class << self
          attr_reader :sites

          def install = Random.singleton_class.prepend(Made)
        end

        def initialize
          @before = ObjectSpace.each_object(Random).reject { |one| harmless?(one) }.map { |one| [one, one.dup] }
        end

        def findings
          @before.filter_map do |generator, copy|
            next if generator == copy

            ForkSafety::Finding.new(
              :random_copied, subject: "Random", location: self.class.sites[generator],
                              message: "Numbers were drawn from a generator made before the refork: each process " \
                                       "gets the same numbers."
            )
          end
        end

        private

        # This generator is used for names of temporary files: if a file exists, Ruby tries the next name. The constant
        # is private, so defined? does not see it.
        def harmless?(generator)
          Dir.const_defined?(:Tmpname) && Dir::Tmpname.const_defined?(:RANDOM) &&
            Dir::Tmpname.const_get(:RANDOM).equal?(generator)
        end
      end

      # Constants that are, or contain, the pid of an earlier process of the run.
      module Pids
        LONGEST = 200   # bytes of a text
        SMALLEST = 1000 # a smaller number in a text may be any number
        NAMES = /pid|process/i # of constants that are a number
        private_constant :LONGEST, :SMALLEST, :NAMES

        class << self
          def findings(pids)
            ForkSafety::PidConstants.holding(pids, longest: LONGEST).select { |one| stale?(one) }.map do |one|
              message = "#{one.full_name} still holds the pid of an earlier process."
              ForkSafety::Finding.new(:pid_cached, subject: one.full_name, location: one.location, message: message)
            end
          end

          private

          def stale?(one) = one.text? ? one.pids.any? { |pid| pid >= SMALLEST } : one.name.match?(NAMES)
        end
      end

      # The locks that background threads hold when their process is forked.
      module Locks
        # @return [Array<ForkSafety::Finding>] one for all locks: Ruby does not tell which thread holds which
        def self.findings
          return [] if Thread.list.one? # its fibers may hold locks, and a child has them too

          held = ObjectSpace.each_object(Thread::Mutex).count { |mutex| mutex.locked? && !mutex.owned? }
          return [] if held.zero?

          places = (Thread.list - [Thread.main]).filter_map do |thread|
            ForkSafety::Audit::Sites.line(thread.backtrace_locations || [])
          end
          message = "A background thread held a lock during the refork, and the child does not have the thread."
          message += " Background threads were at #{places.join(", ")}." if places.any?
          [ForkSafety::Finding.new(:lock_held, subject: "Mutex", location: places.first, message: message)]
        end
      end
    end
  end
end
