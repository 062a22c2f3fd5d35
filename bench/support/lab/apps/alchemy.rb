# frozen_string_literal: true

require "json"
require "support/lab/filled_app"
require "support/lab/traffic"
require_relative "../../../apps/alchemy/traffic"

module Bench
  module Lab
    module Apps
      # A site of Alchemy CMS: pages, back office and API. The sessions of its users are made with the database.
      class Alchemy < FilledApp
        SESSIONS = "sessions.json"

        # @param bundle [Bundle, nil] see FilledApp
        def initialize(bundle = nil)
          super("alchemy", /alchemy[-_]\w+/, bundle)
        end

        # @param seed [Integer]
        def traffic(seed)
          mix = Bench::Alchemy::Traffic
          sessions = JSON.parse(File.read(File.join(data, SESSIONS)))
          Traffic.new(mix.targets(sessions), writes: mix.writes(sessions), share: mix::WRITES, seed: seed)
        end
      end

      add("alchemy") { Alchemy.new }
    end
  end
end
