# frozen_string_literal: true

module Pando
  class Config
    # Some defaults depend on the environment, and on whether the application is a Rails app. A setting declares them
    # under the names below: `default: :auto, development: 1`.
    #
    # Made by Values, in each process that loads the configuration.
    #
    # @api private
    class Situation
      # In order of precedence, each with its name in `pando config` and the documentation.
      NAMES = {
        rails_development: "of a Rails app in development",
        development: "in development",
        rails: "of a Rails app"
      }.freeze
      SOURCES = ["default", *NAMES.values.map { |words| "default #{words}" }].freeze

      # Files that `rails new` creates and every Rails app needs.
      RAILS = %w[config/application.rb config/environment.rb].freeze

      # @param environment [String] development defaults apply in "development" and "test"
      # @param directory [String, nil] absolute
      def initialize(environment, directory)
        @development = %w[development test].include?(environment)
        @rails = !directory.nil? && RAILS.all? { |file| File.file?(File.join(directory, file)) }
      end

      # @param setting [Setting]
      # @return [Array(Object, String)] the default that applies, and its source
      def default_of(setting)
        name = NAMES.keys.find { |one| holds?(one) && setting.defaults.key?(one) }
        return [setting.default, "default"] unless name

        [setting.defaults.fetch(name), "default #{NAMES.fetch(name)}"]
      end

      private

      def holds?(name)
        { rails_development: @rails && @development, development: @development, rails: @rails }.fetch(name)
      end
    end
  end
end
