# frozen_string_literal: true

module Pando
  module Doctor
    module Checks
      # What a forked child inherits wrongly or not at all: threads, held locks, signal handlers, random number
      # generators, pids in constants, at_exit handlers, and files that it deletes though an ancestor made them.
      class Inheritance < Check
        def findings
          lost_threads + native_threads + held_locks + deleted_files + exit_handlers + lost_signal_handlers +
            random_generators + pid_constants
        end

        # @return [Array<ForkSafety::Finding>] threads that C code started, which a fork loses
        def native_threads
          missing(:natives) { |name, alive| alive.include?(name) }.uniq.map do |name|
            location = evidence.origin(:thread) { |one| one[:comm] == name } || evidence.origin(:thread) { true }
            finding(:native_thread, subject: "native thread #{name}", location: location, severity: :error,
                                    message: "a thread of native code (#{name}) runs where a fork is made, and in no " \
                                             "child that has served")
          end.uniq(&:location)
        end

        private

        # Ruby threads that a fork ended and that no child started again.
        def lost_threads
          gone = missing(:threads, evidence.forkers) do |thread, alive|
            thread[:location].nil? || thread[:excused] || evidence.ours?(thread[:location]) ||
              alive.any? { |one| one[:location] == thread[:location] }
          end
          gone.uniq { |thread| thread[:location] }.map do |thread|
            name = thread[:name] ? "thread #{thread[:name]}" : "a thread"
            finding(:lost_thread, subject: name, location: thread[:location], message: thread[:message],
                                  advice: thread[:advice])
          end
        end

        # What a forker had, and none of its children that have served.
        # @param list [Symbol] key of a snapshot @param forkers [Array<Hash>] their snapshots
        # @yieldparam one [Object] of the forker's list @yieldparam alive [Array] the lists of all its children
        # @yieldreturn [Object] truthy: it is not missing
        def missing(list, forkers = evidence.snapshots(:fork))
          children = {}.compare_by_identity
          forkers.each { |forker| children[forker] = [] }
          evidence.each_fork { |forker, child| children.fetch(forker) << child[list] }
          children.flat_map { |forker, lists| forker[list].reject { |one| yield one, lists.flatten } }
        end

        # In the child the thread that holds the lock is gone, and the data that the lock guards is half changed.
        def held_locks
          held = evidence.snapshots(:fork).flat_map { |fact| fact[:locks] }.uniq
          held.reject { |lock| evidence.ours?(lock[:location]) }.map do |lock|
            name = "a #{lock[:type]}"
            finding(:lock_held, subject: name, location: lock[:location],
                                message: "#{name} is held by a background thread while the process is forked")
          end
        end

        def deleted_files
          evidence.records(:deletion).uniq { |record| record[:location] }.map do |record|
            name = "file #{File.basename(record[:path]).gsub(/\d{4,}[\w-]*/, "*")}"
            finding(:file_deleted, subject: name, location: record[:location],
                                   message: "#{name}, which an ancestor made, was deleted by a child at its end")
          end
        end

        def exit_handlers
          evidence.records(:exit_handler).uniq { |record| record[:location] }.map do |record|
            finding(:exit_handler, subject: "an at_exit handler", location: record[:location],
                                   severity: severity_of(record[:location]),
                                   message: "an at_exit handler ran in processes that did not register it")
          end
        end

        # Handlers that the application set when it was loaded, and that workers do not have.
        def lost_signal_handlers
          lost = evidence.snapshots(:served).flat_map do |worker|
            worker[:traps][:loaded].reject { |set| set[:ours] || handled?(worker, set) }
          end
          lost.uniq { |set| set.values_at(:signal, :location) }.map do |set|
            name = "SIG#{set[:signal]}"
            finding(:signal_handler_lost, subject: name, location: set[:location],
                                          severity: severity_of(set[:location]),
                                          message: "the application's handler of #{name} does not hold in workers")
          end
        end

        def handled?(worker, set)
          now = worker[:traps][:now].find { |one| one[:signal] == set[:signal] }
          number = Signal.list[set[:signal]]
          !now.nil? && !now[:ours] && (number.nil? || number.zero? || worker[:caught].hex[number - 1] == 1)
        end

        def random_generators
          draws = []
          evidence.each_fork do |forker, child|
            drawn(forker, child).each { |one| draws << [one[:location], child[:pid]] }
          end
          draws.uniq.group_by(&:first).map { |location, all| random_generator(location, all.size) }
        end

        # @return [Array<Hash>] generators that the child has inherited and drawn from
        def drawn(forker, child)
          before = forker[:generators].to_h { |one| [one[:id], one[:state]] }
          child[:generators].select { |one| before.key?(one[:id]) && before[one[:id]] != one[:state] }
        end

        # Libraries often use theirs to spread delays, where repeated numbers do no harm.
        def random_generator(location, children)
          severity = :error if children > 1 && evidence.own?(location)
          finding(:random_copied, subject: "a Random object", location: location, severity: severity,
                                  message: "a Random object was made before the fork and drawn from in " \
                                           "#{children == 1 ? "one process" : "#{children} processes"} after it: " \
                                           "each draws the same numbers")
        end

        def pid_constants
          held = evidence.snapshots(:served).flat_map { |fact| fact[:constants] }.uniq
          held.reject { |one| evidence.ours?(one[:location]) }.map do |one|
            finding(:pid_cached, subject: one[:name], location: one[:location],
                                 severity: severity_of(one[:location], one[:text] ? :error : :warning),
                                 message: "the constant #{one[:name]} #{pid_message(one)}")
          end
        end

        # An application may compare a pid that it has kept, to see whether it was forked. A text is shown or sent.
        def pid_message(one)
          return "has the pid of another process in its text" if one[:text]

          "is the pid of another process, which is right only if Process.pid is compared with it"
        end
      end
    end
  end
end
