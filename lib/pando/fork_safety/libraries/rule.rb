# frozen_string_literal: true

module Pando
  module ForkSafety
    module Libraries
      # What applies to a library from one version (inclusive) up to another (exclusive), optionally under a
      # condition.
      #
      # @api private
      Rule = Struct.new(:verdict, :since, :before, :given, :condition, :note, :advice, :source, :used,
                        keyword_init: true) do
        # @param version [Gem::Version, nil] nil if the library does not say
        def holds?(version) = within?(version) && (condition.nil? || condition.call)

        # @return [Boolean] whether to refuse a fork of this process now
        def refuses? = verdict == :refused && (used.nil? || used.call)

        # @return [String] the range, for people
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
