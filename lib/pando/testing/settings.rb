# frozen_string_literal: true

require "pando/errors"

module Pando
  module Testing
    # How a suite reforks. The suite may change the settings before its first test, except for those that a variable of
    # the environment sets.
    class Settings
      VARIABLES = { "PANDO_REFORK_EVERY" => :every, "PANDO_REFORK_STRICT" => :strict,
                    "PANDO_REFORK_FAIL_ON" => :fail_on }.freeze
      EVERY = 20
      PATIENCE = 60.0
      YES = %w[1 true yes on].freeze
      NO = ["0", "false", "no", "off", ""].freeze
      FAIL_ON = %i[error warning never].freeze
      TEST_GEMS = %r{/(?:minitest|rspec|simplecov|capybara|webmock|vcr|test-unit|cucumber|selenium)[-\w]*-\d[^/]*/}
      PANDO = "#{File.expand_path("..", __dir__)}/".freeze
      private_constant :VARIABLES, :EVERY, :PATIENCE, :YES, :NO, :FAIL_ON, :TEST_GEMS, :PANDO

      # @return [Integer, nil] tests between two reforks; nil: never refork
      attr_reader :every
      # @return [Boolean]
      attr_reader :strict
      # @return [Symbol] the least severity of a finding that fails the run: :error, :warning, or :never
      attr_reader :fail_on
      # @return [Float] seconds that the second child of strict mode may take for one test
      attr_reader :patience
      # @return [String, nil] config file whose hooks run around each refork; nil for none
      attr_reader :config_file
      # @return [Array<String>] folders of the suite itself, whose at_exit blocks are not the app's
      attr_accessor :folders

      # @param env [Hash{String => String}]
      # @return [Settings]
      # @raise [ConfigError] a variable has a wrong value
      def self.from(env)
        new.tap do |settings|
          VARIABLES.each { |variable, name| settings.fix(name, env[variable]) if env.key?(variable) }
        end
      end

      def initialize
        @fixed = []
        @every = EVERY
        @strict = false
        @fail_on = :error
        @patience = PATIENCE
        @config_file = "config/pando.rb"
        @folders = %w[test spec features].map { |name| File.expand_path(name) }
      end

      # @param value [Integer, String, false, nil] 0, false or "off": never refork
      # @raise [ConfigError]
      def every=(value)
        number = NO.include?(value.to_s) ? 0 : Integer(value, exception: false)
        raise ConfigError, "PANDO_REFORK_EVERY: #{value.inspect} is not a number of tests" if number.nil? || number < 0

        set(:every, number.zero? ? nil : number)
      end

      # @param value [Boolean, String]
      # @raise [ConfigError]
      def strict=(value)
        known = YES.include?(value.to_s) || NO.include?(value.to_s)
        raise ConfigError, "PANDO_REFORK_STRICT: #{value.inspect} must be 1 or 0" unless known

        set(:strict, YES.include?(value.to_s))
      end

      # @param value [Symbol, String]
      # @raise [ConfigError]
      def fail_on=(value)
        found = FAIL_ON.find { |one| one.to_s == value.to_s }
        unless found
          raise ConfigError, "PANDO_REFORK_FAIL_ON: #{value.inspect} must be one of #{FAIL_ON.join(", ")}"
        end

        set(:fail_on, found)
      end

      # @param seconds [Numeric]
      def patience=(seconds)
        @patience = Float(seconds)
      end

      # @param path [String, nil, false]
      def config_file=(path)
        @config_file = path || nil
      end

      # Sets what the suite does not change any more.
      #
      # @api private
      def fix(name, value)
        public_send(:"#{name}=", value)
        @fixed << name
      end

      # @api private
      # @return [Boolean] whether a file belongs to the suite or to a test library
      def suite?(path)
        path = File.expand_path(path)
        TEST_GEMS.match?(path) || path.start_with?(PANDO, *folders.map { |folder| "#{folder}/" })
      end

      # @param finding [ForkSafety::Finding]
      # @return [Boolean]
      def fatal?(finding)
        order = ForkSafety::Finding::SEVERITIES
        fail_on != :never && order.index(finding.severity) <= order.index(fail_on)
      end

      private

      def set(name, value) = @fixed.include?(name) || instance_variable_set(:"@#{name}", value)
    end
  end
end
