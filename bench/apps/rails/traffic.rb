# frozen_string_literal: true

require_relative "blueprint"

module Bench
  module RailsApp
    # What clients ask of the app: pages and JSON of every model, and now and then a change.
    module Traffic
      ROWS = 60
      WRITES = 0.04 # of all requests

      # @return [Array<Array(String, String)>] verb and path; %d stands for the number of a row
      def self.targets
        Blueprint.all.flat_map do |model|
          pages = ["", "/summary", "/new", "/%d", "/%d/edit"].map { |rest| "/#{model.plural}#{rest}" }
          json = ["", "/%d", "/%d/related"].map { |rest| "/api/#{model.plural}#{rest}" }
          (pages + json).map { |path| ["GET", path] }
        end
      end

      # @return [Array<Array(String, String)>]
      def self.writes = Blueprint.all.map { |model| ["PATCH", "/api/#{model.plural}/%d"] }
    end
  end
end
