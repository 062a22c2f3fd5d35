# frozen_string_literal: true

require "pando/errors"

module Pando
  module Telemetry
    # The profilers that Pando knows how to use. They are gems of the application's: none is required
    # before a setting asks for it.
    #
    # @api private
    module Profilers
      ADVICE = "add `gem \"vernier\"` (Ruby 3.2.1 or newer) or `gem \"stackprof\"` to the Gemfile"
      # In order of preference.
      NAMES = %w[vernier stackprof].freeze

      # @return [Class] of the first that is installed: .new starts nothing yet, #start, #stop, #write(path)
      # @raise [BootError] there is none
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
