# frozen_string_literal: true

module Pando
  module Doctor
    module Checks
      # What each child has a copy of that goes on in step or is out of date: generators of random
      # numbers, and process numbers in constants.
      #
      # @api private
      class Copies < Check
        def findings = generators + constants

        private

        def generators
          drawn = []
          evidence.each_fork do |forker, child|
            before = forker[:generators].to_h { |one| [one[:id], one[:state]] }
            drawn.concat(child[:generators].select { |one| before.key?(one[:id]) && before[one[:id]] != one[:state] })
          end
          drawn.group_by { |one| one[:location] }.map { |location, all| random(location, all.size) }
        end

        # Those of libraries are often for delays that differ, where a repetition is no harm.
        def random(location, children)
          severity = :error if children > 1 && evidence.own?(location)
          finding(:random_copied, subject: "a Random object", location: location, severity: severity,
                                  message: "a Random object was made before the fork and drawn from in " \
                                           "#{children == 1 ? "one process" : "#{children} processes"} after it: " \
                                           "each draws the same numbers")
        end

        def constants
          held = evidence.snapshots(:served).flat_map { |fact| fact[:constants] }.uniq
          held.reject { |one| evidence.ours?(one[:location]) }.map do |one|
            finding(:pid_cached, subject: one[:name], location: one[:location],
                                 severity: severity_of(one[:location], one[:text] ? :error : :warning),
                                 message: "the constant #{one[:name]} #{pid_message(one)}")
          end
        end

        # By a number of its own an application knows whether it was forked; a text is shown or sent.
        def pid_message(one)
          return "has the pid of another process in its text" if one[:text]

          "is the pid of another process, which is right only if Process.pid is compared with it"
        end
      end
    end
  end
end
