# frozen_string_literal: true

require "pando/testing/places"

module Pando
  module Testing
    class Strict
      # The generators of random numbers that a fork copies, and those of them that were drawn from afterwards: each
      # child gets the same numbers.
      #
      # @api private
      class Draws
        # On Random's class: remembers the line that made a generator.
        module Made
          def new(...)
            super.tap { |generator| Draws.sites[generator] = Places.caller_site }
          end
        end

        @sites = {}.compare_by_identity # a WeakMap would hold the lines as weakly

        class << self
          attr_reader :sites

          def install
            return if @installed

            @installed = true
            Random.singleton_class.prepend(Made)
          end
        end

        def initialize
          @before = ObjectSpace.each_object(Random).reject { |one| harmless?(one) }.map { |one| [one, one.dup] }
        end

        # @return [Array<ForkSafety::Finding>]
        def findings
          @before.filter_map do |generator, copy|
            next if generator == copy

            ForkSafety::Finding.new(
              :random_copied, subject: "Random", location: self.class.sites[generator],
                              message: "Numbers were drawn from a generator made before the refork: each process " \
                                       "gets the same."
            )
          end
        end

        private

        # Names of temporary files: where one exists, the next is tried.
        def harmless?(generator) = defined?(Dir::Tmpname::RANDOM) && Dir::Tmpname::RANDOM.equal?(generator)
      end
    end
  end
end
