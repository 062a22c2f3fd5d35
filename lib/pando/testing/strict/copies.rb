# frozen_string_literal: true

require "pando/fork_safety/audit/sites"

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

        # This generator is used for names of temporary files: if a file exists, Ruby tries the next name.
        def harmless?(generator) = defined?(Dir::Tmpname::RANDOM) && Dir::Tmpname::RANDOM.equal?(generator)
      end

      # Constants that are, or contain, the pid of an earlier process of the run.
      module Pids
        LONGEST = 200   # the most bytes of a string to search
        SMALLEST = 1000 # a smaller number in a string may be any number
        # Module's own methods, because a class may have redefined them.
        SINGLETON, CONSTANTS, AUTOLOAD, GET, PLACE, NAME =
          %i[singleton_class? constants autoload? const_get const_source_location name].map do |name|
            Module.instance_method(name)
          end
        private_constant :LONGEST, :SMALLEST, :SINGLETON, :CONSTANTS, :AUTOLOAD, :GET, :PLACE, :NAME

        class << self
          def findings(pids)
            quietly do
              owners = ObjectSpace.each_object(Module).reject { |one| SINGLETON.bind_call(one) }
              owners.flat_map { |owner| stale(owner, pids).map { |name| finding(owner, name) } }
            end
          end

          private

          def stale(owner, pids)
            CONSTANTS.bind_call(owner, false).select do |name|
              next if AUTOLOAD.bind_call(owner, name, false)

              stale?(name, GET.bind_call(owner, name, false), pids) && !made_in_c?(owner, name)
            rescue NameError, LoadError
              false # made private, or const_missing interfered
            end
          end

          # Constants such as Ruby's own version, which may contain any number. They have no line.
          def made_in_c?(owner, name) = PLACE.bind_call(owner, name, false).to_a.last.to_i.zero?

          def stale?(name, value, pids)
            case value
            when Integer then pids.include?(value) && name.match?(/pid|process/i)
            when String
              value.bytesize <= LONGEST && numbers(value).intersect?(pids.select { |pid| pid >= SMALLEST }.map(&:to_s))
            end
          end

          # Compares digits as text: 001001 is not a pid.
          def numbers(text) = text.b.scan(/\d+/)

          def finding(owner, name)
            place = PLACE.bind_call(owner, name)
            full = owner.equal?(Object) ? name.to_s : "#{NAME.bind_call(owner)}::#{name}"
            ForkSafety::Finding.new(:pid_cached, subject: full, location: place&.first && place.join(":"),
                                                 message: "#{full} still holds the pid of an earlier process.")
          end

          def quietly
            before = Warning[:deprecated]
            Warning[:deprecated] = false
            yield
          ensure
            Warning[:deprecated] = before
          end
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
          message = "A background thread held a lock during the refork, and the child does not have the thread. " \
                    "Background threads were at #{places.join(", ")}."
          [ForkSafety::Finding.new(:lock_held, subject: "Mutex", location: places.first, message: message)]
        end
      end
    end
  end
end
