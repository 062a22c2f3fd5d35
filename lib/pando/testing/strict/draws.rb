# frozen_string_literal: true

require "pando/testing/places"

module Pando
  module Testing
    class Strict
      # Finds the random number generators that a fork copied and that were used afterwards: each child gets the same
      # numbers from them.
      class Draws
        # Prepended to Random's class: remembers the line that made a generator.
        module Made
          def new(...)
            super.tap { |generator| Draws.sites[generator] = Places.caller_site }
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
    end
  end
end
