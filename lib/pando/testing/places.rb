# frozen_string_literal: true

require "rbconfig"

module Pando
  module Testing
    # Tells which code a line belongs to.
    module Places
      LIBRARIES = [*Gem.path, RbConfig::CONFIG["rubylibdir"], File.expand_path("..", __dir__)].freeze
      TEST_GEMS = %r{/(?:minitest|rspec|simplecov|capybara|webmock|vcr|test-unit|cucumber|selenium)[-\w]*-\d[^/]*/}
      private_constant :LIBRARIES, :TEST_GEMS

      class << self
        # @return [Boolean] whether it belongs to the suite or to a test library
        def suite?(path)
          path = File.expand_path(path)
          TEST_GEMS.match?(path) || path.start_with?(File.expand_path("..", __dir__)) ||
            Testing.settings.folders.any? { |folder| path.start_with?("#{folder}/") }
        end

        # @return [String, nil] "file:line" of the innermost caller in the user's code; without one, of the innermost
        #   caller
        def caller_site
          innermost(caller_locations(2).reject { |place| own?(path(place)) })
        end

        # @return [String, nil] "file:line" where a thread is, in the user's code if possible
        def of(thread) = innermost(thread.backtrace_locations || [])

        private

        def innermost(places)
          place = places.find { |one| !library?(path(one)) } || places.first
          place && "#{path(place)}:#{place.lineno}"
        end

        def path(place) = place.absolute_path || place.path
        def own?(path) = path.start_with?(File.join(__dir__, "")) || path.start_with?("<internal:")
        def library?(path) = LIBRARIES.any? { |folder| path.start_with?("#{folder}/") }
      end
    end
  end
end
