# frozen_string_literal: true

require "pando/config/types"
require "pando/config/types/texts"

module Pando
  class Config
    # The keywords of a `node` line that belong to one of Pando's own runners. They stand here and not with the
    # runners, so that Pando finds a mistake before it loads any job library.
    #
    # @api private
    module RunnerKeywords
      ANYTHING = Types::Anything.new

      # @return [Hash{Symbol => Hash{Symbol => Type}}] nil: the library checks its keywords itself
      ALL = {
        sidekiq: { reliable: Types::Truth.new, weights: Types::Weights.new },
        karafka: {},
        solid_queue: { polling_interval: Types::Seconds.new, dispatchers: Types::Whole.new(0..1024),
                       killed_jobs: Types::Choice.new(:again, :fail), queue_file: Types::Truth.new },
        good_job: nil,
        bunny: { consumer: ANYTHING, connection: ANYTHING, prefetch: Types::Whole.new(0..65_535), declare: ANYTHING,
                 on_error: Types::Choice.new(:reject, :requeue) },
        resque: { redis: ANYTHING, interval: Types::Seconds.new, job_timeout: Types::Seconds.new }
      }.freeze

      # Runners of which two nodes with the same number must never run at once.
      EXCLUSIVE = %i[karafka].freeze
      # Runners whose library comes with the Rails app that `require:` loads, instead of being loaded before it.
      IN_RAILS = %i[solid_queue good_job].freeze

      NEEDED = { bunny: { consumer: "\"YourClass\"" } }.freeze

      class << self
        # @param runner [Symbol] @param said [Hash{Symbol => Object}] a nil value counts as left out
        # @param all [Array<Symbol>] the keywords that each node has, for suggestions
        # @return [Hash{Symbol => Object}] the options for the runner
        # @raise [Type::Invalid]
        def read(runner, said, queues, all)
          return said unless (known = ALL[runner])

          wrong = (said.keys - known.keys).first
          raise Type::Invalid, "has no keyword #{wrong}:.#{Suggestion.for(wrong, [*known.keys, *all])}" if wrong

          read = said.compact.to_h { |key, value| [key, cast(key, known.fetch(key), value)] }
          require_needed(runner, read)
          check_weights(read[:weights], queues)
          read
        end

        private

        def cast(key, type, value)
          type.cast(value)
        rescue Type::Invalid => e
          raise Type::Invalid, "#{key}: #{e.message}"
        end

        def require_needed(runner, read)
          key, example = NEEDED.fetch(runner, {}).find { |name, _| !read.key?(name) }
          raise Type::Invalid, "needs #{key}: #{example}" if key
        end

        def check_weights(weights, queues)
          strange = (weights || {}).keys.map(&:to_s) - queues
          return if strange.empty?

          raise Type::Invalid, "weights: #{strange.first} is not one of its queues (#{queues.join(", ")})"
        end
      end
    end
  end
end
