# frozen_string_literal: true

require "pando/config/settings"

module Pando
  class Server
    # The variables from which frameworks read the name of the environment. The monitor compares them with the
    # configuration, and the mold sets them before it loads the application.
    #
    # @api private
    class AppEnvironment
      VARIABLES = Config::Settings::ENVIRONMENT_VARIABLES

      # @param config [Config]
      # @param variables [Hash{String => String}, ENV]
      def initialize(config, variables = ENV)
        @config = config
        @variables = variables
      end

      # @return [String, nil] the contradiction and the remedy, in one line
      def contradiction
        return unless VARIABLES.include?(@config.source(:environment))

        others = VARIABLES.reject { |name| agrees?(name) }
        return if others.empty?

        said = others.map { |name| "#{name}=#{@variables[name]}" }.join(" and ")
        "#{@config.source(:environment)}=#{@config.environment} decides, but #{said} says otherwise: " \
          "set both alike, or unset #{others.join(" and ")}"
      end

      # Sets the variables for the application. An APP_ENV of another value stays if RAILS_ENV or RACK_ENV decides,
      # because many deployments use that name for something else.
      def apply
        VARIABLES.each { |name| @variables[name] = @config.environment unless foreign?(name) }
      end

      private

      def foreign?(name)
        name == "APP_ENV" && VARIABLES.include?(@config.source(:environment)) && !agrees?(name)
      end

      def agrees?(name) = ["", @config.environment].include?(@variables[name].to_s)
    end
  end
end
