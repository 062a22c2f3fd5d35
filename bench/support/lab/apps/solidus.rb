# frozen_string_literal: true

require "support/lab/filled_app"
require "support/lab/traffic"
require "support/packages"
require_relative "../../../apps/solidus/traffic"

module Bench
  module Lab
    module Apps
      # A Solidus shop: storefront, back office and API.
      class Solidus < FilledApp
        # @param bundle [Bundle, nil] see FilledApp
        def initialize(bundle = nil)
          super("solidus", /solidus_\w+/, bundle)
        end

        # @param seed [Integer]
        def traffic(seed)
          mix = Bench::Solidus::Traffic
          Traffic.new(mix.targets, writes: mix.writes, share: mix::WRITES, seed: seed)
        end

        private

        def fill(bundle)
          Packages.executable("mogrify", "imagemagick") # resizes the images
          super
        end
      end

      add("solidus") { Solidus.new }
    end
  end
end
