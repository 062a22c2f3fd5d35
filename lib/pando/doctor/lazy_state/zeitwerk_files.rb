# frozen_string_literal: true

module Pando
  module Doctor
    module LazyState
      # The files that Zeitwerk looks after. What is in a namespace it declares only once the namespace is loaded,
      # too late for {Autoloads} to have seen it.
      #
      # @api private
      module ZeitwerkFiles
        # @param path [String]
        # @return [Object, nil] the loader that looks after this file
        def self.loader_of(path)
          return unless defined?(::Zeitwerk::Registry)

          found = nil
          ::Zeitwerk::Registry.loaders.each do |loader|
            found = loader if loader.dirs.any? { |folder| path.start_with?("#{folder}/") }
          end
          found
        end

        # @return [Boolean] whether this is an environment of Rails that does without eager loading
        def self.loaded_when_needed?
          defined?(::Rails.env) && %w[development test].include?(::Rails.env.to_s)
        end

        # @param path [String]
        # @return [String, nil] the constant that it defines
        def self.constant_of(path)
          loader = loader_of(path)
          loader.cpath_expected_at(path) if loader.respond_to?(:cpath_expected_at)
        rescue ::Zeitwerk::Error
          nil # it is told to leave this file alone
        end
      end
    end
  end
end
