# frozen_string_literal: true

require "fileutils"
require "json"
require "support/lab/setup"

module Bench
  module Lab
    # The results of finished runs, a file each.
    class Archive
      # @param folder [String]
      def initialize(folder)
        @folder = folder
      end

      # @return [Array<Hash>]
      def runs = Dir[File.join(@folder, "*.json")].map { |path| read(path) }

      # @param variant [Variant]
      # @return [Boolean] whether it has been measured with the same settings
      def include?(variant) = setup_in(file(variant)) == variant.setup

      # @param figures [Hash]
      # @return [void]
      def store(variant, figures)
        FileUtils.mkdir_p(@folder)
        rename_older(variant)
        File.write(file(variant), JSON.generate({ **variant.record, **figures }))
      end

      private

      # Names once had no digest, so the file may hold a run with other settings. That one gets its own name.
      def rename_older(variant)
        other = setup_in(file(variant))
        return if other.nil? || other == variant.setup

        File.rename(file(variant), file(variant.dup.tap { |older| older.setup = other }))
      end

      def setup_in(path) = File.exist?(path) ? Setup.of(read(path)) : nil
      def read(path) = JSON.parse(File.read(path), symbolize_names: true)
      def file(variant) = File.join(@folder, "#{variant.id}.json")
    end
  end
end
