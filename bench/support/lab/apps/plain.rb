# frozen_string_literal: true

require "support/lab/traffic"

module Bench
  module Lab
    module Apps
      # A rackup file of bench/apps.
      class Plain
        # The paths of bench/apps/roda.ru.
        ANIMALS = %w[ant bee cat dog eel fox gnu hen ibis jay kea lynx mole newt owl pig quail ram seal toad].freeze

        def initialize(name, targets, environment = {})
          @name = name
          @targets = targets
          @environment = environment
        end

        def bundle = Apps.bundle

        # @return [Hash{String => String}] for the server
        def environment(_folder) = @environment.merge("LAB_APP" => File.join(FOLDER, "#{@name}.ru"))

        # @param seed [Integer]
        def traffic(seed) = Traffic.new(@targets, seed: seed)

        # Called once, before any server is started.
        def prepare(_bundle); end
      end

      add("constants") do |options|
        Plain.new("constants", [%w[GET /]], "BENCH_METHODS" => options.fetch(:methods, 100_000).to_s)
      end
      add("roda") { Plain.new("roda", Plain::ANIMALS.map { |name| ["GET", "/#{name}/%d"] }) }
    end
  end
end
