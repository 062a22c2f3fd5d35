# frozen_string_literal: true

require "pando/errors"

module Pando
  module Telemetry
    # The profilers that Pando can use. They are gems in the application's bundle. Pando requires one only if a setting
    # asks for it.
    #
    # @api private
    module Profilers
      ADVICE = "add `gem \"vernier\"` (Ruby 3.2.1 or newer) or `gem \"stackprof\"` to the Gemfile"
      # In order of preference.
      NAMES = %w[vernier stackprof].freeze

      # @return [Class] the first one that is installed. Its instances have #start, #stop and #write(path)
      # @raise [BootError] if none is installed
      def self.installed
        name = NAMES.find { |gem| available?(gem) }
        raise BootError, "first_request_profile needs a profiler: #{ADVICE}" unless name

        require "pando/telemetry/profilers/#{name}"
        const_get(name.capitalize)
      end

      def self.available?(gem)
        require gem
        true
      rescue LoadError => e
        raise unless e.path == gem

        false
      end
      private_class_method :available?
    end
  end
end
