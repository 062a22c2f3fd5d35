# frozen_string_literal: true

require "pando/doctor/subject/wire"

module Pando
  module Doctor
    # The application's folder, by the name that the user gave and by its real one: code is loaded by either, if a link
    # leads to the folder. Owned by the evidence of an examination, in the command's process.
    class AppFolder
      # @param path [String] absolute
      def initialize(path)
        # Reported locations are cleaned too.
        @names = [path, real(path)].uniq.map { |name| Subject::Wire.clean(name) }
      end

      # @param location [String, nil] a line
      # @return [Boolean] whether it is the application's own, not a library's
      def own?(location)
        return false if location.nil?

        path = File.expand_path(location, @names.first)
        @names.any? { |name| path.start_with?("#{name}/") && !path.start_with?("#{name}/vendor/") } &&
          Gem.path.none? { |folder| path.start_with?("#{folder}/") }
      end

      # @param location [String, nil]
      # @return [String, nil] relative to the folder, if it is below it
      def local(location)
        name = location && @names.find { |one| location.start_with?("#{one}/") }
        name ? location.delete_prefix("#{name}/") : location
      end

      private

      def real(path)
        File.realpath(path)
      rescue SystemCallError
        path
      end
    end
  end
end
