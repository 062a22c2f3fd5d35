# frozen_string_literal: true

require "pando/config/settings"

module Pando
  class Config
    # The values of each setting from each source. A flag beats the config file,
    # the file beats an environment variable, the variable beats the default.
    #
    # @api private
    class Values
      # A value and where it was written.
      Entry = Struct.new(:value, :source)

      # @param directory [String, nil] absolute, of the application
      def initialize(env, directory = nil)
        @env = env
        @directory = directory
        @flags = {}
        @file = {}
      end

      # @param flag [String] as it was typed
      def set_by_flag(setting, text, flag)
        add(@flags, setting, Values.cast(setting, text, flag), flag)
      end

      # @param value [Object] as #cast returned it
      # @param source [String] "config/pando.rb:3"
      def set_by_file(setting, value, source)
        add(@file, setting, meant(setting, value), source)
      end

      def set_by_file?(name) = @file.key?(name)

      # @return [Hash{Symbol => Array<Entry>}] the values from the file, by the setting's name
      def in_file = @file

      # @return [Array<Entry>] the effective values; several only if the setting is repeatable
      # @raise [ConfigError] the value comes from an environment variable and is wrong
      def entries(setting)
        @flags[setting.name] || @file[setting.name] || from_env(setting) || default(setting)
      end

      # @return [Object] the value that counts so far
      def value(setting) = entries(setting).last.value

      # @return [Object] the cast value
      # @raise [ConfigError] its message begins with `where`
      def self.cast(setting, written, where, options = {})
        setting.cast(written, options)
      rescue Type::Invalid => e
        raise ConfigError, "#{where}: #{e.message}"
      end

      private

      def add(layer, setting, value, source)
        entry = Entry.new(value, source)
        setting.repeatable? ? (layer[setting.name] ||= []) << entry : layer[setting.name] = [entry]
      end

      # A variable that is empty counts as not set.
      def from_env(setting)
        name = variable(setting) or return

        [Entry.new(meant(setting, Values.cast(setting, @env[name], name)), name)]
      end

      def variable(setting) = setting.env.find { |one| !@env[one].to_s.empty? }

      # Translates a value of the variable. The file may pass it on: `workers ENV["WEB_CONCURRENCY"]`.
      def meant(setting, value)
        return value unless setting.meant.key?(value)

        name = variable(setting)
        name && @env[name] == value.to_s ? setting.meant.fetch(value) : value
      end

      def default(setting)
        value, source = default_here(setting)
        (setting.repeatable? ? value : [value]).map { |one| Entry.new(one, source) }
      end

      # Not cached: a line of the config file may still change the environment.
      def default_here(setting)
        return [setting.default, "default"] if setting.defaults.empty?

        Situation.default_of(setting, value(Settings[:environment]), @directory)
      end
    end
  end
end
