# frozen_string_literal: true

module Pando
  module Cluster
    class Generations
      # What is going on, for whoever must wait for it.
      #
      # @api private
      module Occupation
        # What an upcoming generation does.
        DOES = { booting: "is booting", ready: "has booted and is not rolled out yet", canary: "is on trial",
                 rolling: "is rolling out" }.freeze
        private_constant :DOES

        # @return [Array(String, Float), nil] in words, and seconds for which it can go on at most (nil: not known);
        #   nil: nothing is
        def occupation
          return ["generation #{current.number} is watched", remaining] if upcoming.nil? && watching?
          return if upcoming.nil?

          limit = remaining || upcoming.mold&.deadline&.-(Sys.now)
          ["generation #{upcoming.number} (#{upcoming.purpose}) #{DOES.fetch(upcoming.state)}#{trial}", limit]
        end

        private

        def trial
          question = lost_threads.question if on_trial?
          ": its first worker is to show #{question}" if question
        end
      end
    end
  end
end
