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
          drawn.uniq { |one| one[:location] }.map do |one|
            finding(:random_copied, subject: "a Random object", location: one[:location],
                                    message: "a Random object was made before the fork and drawn from after it: " \
                                             "each worker draws the same numbers")
          end
        end

        def constants
          held = evidence.snapshots(:served).flat_map { |fact| fact[:constants] }.uniq
          held.reject { |one| evidence.ours?(one[:location]) }.map do |one|
            finding(:pid_cached, subject: one[:name], location: one[:location], severity: severity_of(one[:location]),
                                 message: "the constant #{one[:name]} holds the pid of another process")
          end
        end
      end
    end
  end
end
