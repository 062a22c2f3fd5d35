# frozen_string_literal: true

require "pando/config/settings"

module Pando
  class Server
    # The variables from which frameworks read the name of the environment and the number of threads. The monitor
    # compares the names with the configuration, and the mold sets the variables before it loads the application.
    class AppEnvironment
      VARIABLES = Config::Settings::ENVIRONMENT_VARIABLES
      # Connections to a database by Rails' own config/database.yml, where RAILS_MAX_THREADS is not set.
      CONNECTIONS = 5

      def initialize(config, variables = ENV)
        @config = config
        @variables = variables
      end

      # @return [String, nil] the contradiction and the remedy, in one line
      def contradiction
        if VARIABLES.include?(@config.source(:environment)) then disagreement
        elsif @config.from_file?(:environment) then overruled
        end
      end

      # Sets the variables for the application. RAILS_MAX_THREADS gives ActiveRecord as many connections as a worker has
      # threads. It stays as it is if it is set, and if the server has job nodes: their libraries read it too, for
      # threads of their own.
      def apply
        apply_name
        threads = Config::Threads.most(@config)
        @variables[Config::Threads::VARIABLE] ||= threads.to_s if threads > CONNECTIONS && @config.nodes.empty?
      end

      # Sets only the name. An APP_ENV of another value stays if RAILS_ENV or RACK_ENV decides, because many deployments
      # use that name for something else.
      def apply_name
        VARIABLES.each { |name| @variables[name] = @config.environment unless foreign?(name) }
      end

      private

      def disagreement
        others = VARIABLES.reject { |name| agrees?(name) }
        return if others.empty?

        said = others.map { |name| "#{name}=#{@variables[name]}" }.join(" and ")
        "#{@config.source(:environment)}=#{@config.environment} decides, but #{said} says otherwise: " \
          "set both alike, or unset #{others.join(" and ")}"
      end

      # With Puma, RAILS_ENV decides for Rails whatever the config file says.
      def overruled
        return if agrees?("RAILS_ENV")

        "#{@config.source(:environment)} says environment #{@config.environment}, and " \
          "RAILS_ENV=#{@variables["RAILS_ENV"]} has no effect: remove the line, or unset RAILS_ENV"
      end

      def foreign?(name)
        name == "APP_ENV" && VARIABLES.include?(@config.source(:environment)) && !agrees?(name)
      end

      def agrees?(name) = ["", @config.environment].include?(@variables[name].to_s)
    end
  end
end
