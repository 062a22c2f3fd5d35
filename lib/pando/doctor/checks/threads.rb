# frozen_string_literal: true

module Pando
  module Doctor
    module Checks
      # Threads that a fork left behind and nobody started again, and threads that are not Ruby's.
      #
      # @api private
      class Threads < Check
        # The thread of Timeout.timeout is started anew with its next use.
        RESTARTED = %r{/timeout\.rb:}

        def findings = lost + native

        private

        def lost
          gone = []
          evidence.each_fork do |forker, child|
            alive = child[:threads].map { |thread| thread[:location] }
            gone.concat(forker[:threads].reject { |thread| alive.include?(thread[:location]) || fine?(thread) })
          end
          gone.uniq { |thread| thread[:location] }.map { |thread| report(thread) }
        end

        def fine?(thread)
          location = thread[:location]
          location.nil? || evidence.ours?(location) || location.match?(RESTARTED)
        end

        def report(thread)
          name = thread[:name] ? "thread #{thread[:name]}" : "a thread"
          finding(:lost_thread, subject: name, location: thread[:location],
                                message: "#{name} runs where a fork is made, and in no child that has served")
        end

        def native
          names = evidence.snapshots(:fork).flat_map { |fact| fact[:natives] }
          names.tally.map do |name, _|
            location = evidence.origin(:thread) { |one| one[:comm] == name } || evidence.origin(:thread) { true }
            finding(:native_thread, subject: "native thread #{name}", location: location,
                                    message: "a thread of native code (#{name}) runs where a fork is made: " \
                                             "no child will have it")
          end.uniq(&:location)
        end
      end
    end
  end
end
