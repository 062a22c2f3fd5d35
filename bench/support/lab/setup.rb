# frozen_string_literal: true

require "digest"
require "json"
require "support/servers/pando"

module Bench
  module Lab
    # The settings of a run that its file's name does not spell out. What does not apply is as by default.
    #
    # @!attribute workers [Integer]
    # @!attribute clients [Integer]
    # @!attribute seed [Integer] of the traffic
    # @!attribute app_methods [Integer] of the constants app
    # @!attribute settings [Array<String>] lines of Pando's configuration
    # @!attribute checkout [String, nil] the folder that Pando runs from; nil: this checkout
    Setup = Struct.new(:workers, :clients, :seed, :app_methods, :settings, :checkout, keyword_init: true) do
      # @param run [Hash] app:, server:, and what is known of the settings
      def self.of(run)
        known = run.slice(*members).compact
        known = known.except(:settings, :checkout) unless run[:server].start_with?("pando")
        known = known.except(:app_methods) unless run[:app] == "constants"
        new(**Setup::DEFAULTS, **known)
      end

      # @return [Hash] what is not as by default
      def own = to_h.reject { |name, value| value == Setup::DEFAULTS[name] }

      # @return [String, nil] nil: all is as by default
      def digest = own.empty? ? nil : Digest::SHA256.hexdigest(JSON.generate(own))[0, 8]

      # @return [Array<String>] what distinguishes this Pando in a table
      def words
        [*(settings - Setup::DEFAULTS[:settings]), *(checkout && File.basename(checkout))]
      end
    end

    Setup::DEFAULTS = { workers: 4, clients: 4, seed: 1, app_methods: 100_000, settings: ["log_format :json"].freeze,
                        checkout: nil }.freeze
  end
end
