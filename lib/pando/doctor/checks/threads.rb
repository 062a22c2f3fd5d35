# frozen_string_literal: true

module Pando
  module Doctor
    module Checks
      # Threads that a fork left behind and nobody started again, and threads that are not Ruby's.
      #
      # @api private
      class Threads < Check
        def findings = lost + native

        private

        def lost
          gone = missing(:threads, evidence.forkers) do |thread, alive|
            thread[:location].nil? || thread[:excused] || evidence.ours?(thread[:location]) ||
              alive.any? { |one| one[:location] == thread[:location] }
          end
          gone.uniq { |thread| thread[:location] }.map { |thread| report(thread) }
        end

        # What a forker had, and none of its children that have served.
        # @param list [Symbol] of a snapshot @param forkers [Array<Hash>] their snapshots
        # @yieldparam one [Object] of the forker's list @yieldparam alive [Array] those of all its children
        # @yieldreturn [Object] truthy: it is there
        def missing(list, forkers = evidence.snapshots(:fork))
          children = {}.compare_by_identity
          forkers.each { |forker| children[forker] = [] }
          evidence.each_fork { |forker, child| children.fetch(forker) << child[list] }
          children.flat_map { |forker, lists| forker[list].reject { |one| yield one, lists.flatten } }
        end

        def report(thread)
          name = thread[:name] ? "thread #{thread[:name]}" : "a thread"
          finding(:lost_thread, subject: name, location: thread[:location], message: thread[:message],
                                advice: thread[:advice])
        end

        def native
          missing(:natives) { |name, alive| alive.include?(name) }.uniq.map do |name|
            location = evidence.origin(:thread) { |one| one[:comm] == name } || evidence.origin(:thread) { true }
            finding(:native_thread, subject: "native thread #{name}", location: location, severity: :error,
                                    message: "a thread of native code (#{name}) runs where a fork is made, and in no " \
                                             "child that has served")
          end.uniq(&:location)
        end
      end
    end
  end
end
