# frozen_string_literal: true

module Pando
  module ForkSafety
    module Libraries
      # What holds for a library from one version (inclusive) up to another (exclusive), under a condition that
      # may be none.
      #
      # @api private
      Rule = Struct.new(:verdict, :since, :before, :given, :condition, :note, :advice, :source, :used,
                        keyword_init: true) do
        # @param version [Gem::Version, nil] nil where the library does not tell
        def holds?(version) = within?(version) && (condition.nil? || condition.call)

        # @return [Boolean] whether a fork of this process is to be refused now
        def refuses? = verdict == :refused && (used.nil? || used.call)

        # @return [String] the range, for a human
        def versions
          return "any" unless since || before

          [("#{since} or newer" if since), ("before #{before}" if before)].compact.join(", ")
        end

        private

        def within?(version)
          return !(since || before) unless version

          release = version.release
          (since.nil? || release >= Gem::Version.new(since)) && (before.nil? || release < Gem::Version.new(before))
        end
      end
    end
  end
end
