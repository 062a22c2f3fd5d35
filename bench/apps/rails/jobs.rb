# frozen_string_literal: true

require_relative "blueprint"

module Bench
  module RailsApp
    # What is done in the background: three kinds of jobs for each model, of some milliseconds each. One is given the
    # number of a row.
    module Jobs
      KINDS = %w[Digest Export Review].freeze

      # @return [Array<String>] their classes
      def self.classes = Blueprint.all.flat_map { |model| KINDS.map { |kind| "#{model.constant}#{kind}Job" } }
    end
  end
end
