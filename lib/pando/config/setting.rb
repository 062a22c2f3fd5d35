# frozen_string_literal: true

require "pando/config/types"

module Pando
  class Config
    # Some defaults depend on the environment, on whether the application is a Rails app, and on the config file. A
    # setting declares them under the names below: `default: :auto, development: 1`. Values asks for the one that
    # applies, in each process that loads the configuration.
    #
    # @api private
    module Situation
      # In order of precedence, each with its name in `pando config` and the documentation.
      NAMES = {
        swarm: "with config/swarm.rb",
        rails_development: "of a Rails app in development",
        development: "in development",
        rails: "of a Rails app"
      }.freeze
      SOURCES = ["default", *NAMES.values.map { |words| "default #{words}" }].freeze

      # Files that `rails new` creates and every Rails app needs.
      RAILS = %w[config/application.rb config/environment.rb].freeze

      def self.rails?(directory) = RAILS.all? { |file| File.file?(File.join(directory, file)) }

      # @param environment [String] development defaults apply in "development" and "test"
      # @param directory [String, nil] absolute
      # @param swarm [Boolean] whether the config file is config/swarm.rb
      # @return [Array(Object, String)] the default that applies, and its source
      def self.default_of(setting, environment, directory, swarm: false)
        development = %w[development test].include?(environment)
        rails = !directory.nil? && rails?(directory)
        holds = { swarm: swarm, rails_development: rails && development, development: development, rails: rails }
        name = NAMES.keys.find { |one| holds[one] && setting.defaults.key?(one) }
        name ? [setting.defaults.fetch(name), "default #{NAMES.fetch(name)}"] : [setting.default, "default"]
      end
    end

    # A keyword that belongs to a setting's value: `listen 80, backlog: 64`.
    Option = Struct.new(:name, :type, :default, :help, keyword_init: true)

    # A setting of the server. The config file's method, the flag, the help, the
    # documentation and the error messages all come from this one declaration.
    #
    #   Setting.new(:workers, type: Types::Workers.new(0..1024), default: :auto, env: "WEB_CONCURRENCY",
    #               flags: %w[-w --workers], argument: "N", help: "How many workers serve.")
    #
    # A setting may be a keyword of another one (`timeout 20, grace: 2`). It then says `within: :timeout`, and has that
    # word at the beginning of its name, `timeout_grace`.
    #
    # @api private
    #
    # @!attribute name [Symbol] the reader of Config and the method of the config file
    # @!attribute unit [String, nil] what a number counts; the type's unit if the declaration has none
    # @!attribute argument [String, nil] the name of the flag's argument, or of a positional argument
    # @!attribute env [Array<String>] names of environment variables; the first one that is set counts
    # @!attribute meant [Hash{Object => Object}] values of those variables that mean another value
    # @!attribute check [Proc, nil] called with the value and the complete Config; returns what is wrong, or nil
    # @!attribute within [Symbol, nil] the setting that this one is a keyword of
    # @!attribute serves [Proc, nil] called with the Config: whether this keyword has an effect
    # @!attribute options [Hash{Symbol => Option}] keywords that #type reads together with the value
    # @!attribute traits [Array<Symbol>] :repeatable (each line adds a value), :positional (an argument without a flag
    #   sets it), :flag_only (not in a file), :readable (a file may ask for it), :second (a keyword that may be written
    #   as a second value, without its name), :reactor (the reactor reads it at its start, so a reload cannot change
    #   it), :shared_env (its variable is meant for other programs, too: a number out of range is no error, and without
    #   workers it is not read)
    # @!attribute defaults [Hash{Symbol => Object}] other defaults, by the name of the Situation in which they apply
    Setting = Struct.new(:name, :type, :default, :help, :unit, :flags, :argument, :env, :meant,
                         :check, :within, :serves, :options, :traits, :defaults, keyword_init: true) do
      # @param declaration [Hash{Symbol => Object}] the attributes, and other defaults by the names of Situation
      def initialize(name, flags: [], env: [], meant: {}, options: [], traits: [], **declaration)
        defaults = declaration.select { |key, _| Situation::NAMES.key?(key) }
        super(name: name, unit: declaration.fetch(:type).unit, flags: flags, env: Array(env), meant: meant,
              options: options.to_h { |option| [option.name, option] }, traits: traits, defaults: defaults,
              **declaration.except(*defaults.keys))
        freeze
      end

      def repeatable? = traits.include?(:repeatable)
      def positional? = traits.include?(:positional)
      def flag_only? = traits.include?(:flag_only)
      def readable? = traits.include?(:readable)
      def second? = traits.include?(:second)
      def reactor? = traits.include?(:reactor)
      def shared_env? = traits.include?(:shared_env)

      # @return [Symbol, nil] the keyword, if it is one of another setting
      def keyword = within && name.name.delete_prefix("#{within}_").to_sym

      # @return [String] "workers", "timeout grace:"
      def title = within ? "#{within} #{keyword}:" : name.name

      # @param value [Object] what the user wrote
      # @param options [Hash{Symbol => Object}] as the user wrote them
      # @raise [Type::Invalid] with the setting's title in its message
      def cast(value, options = {})
        value, parts = split_options(value)
        read = parts.merge(options).to_h { |key, written| [key, cast_option(key, written)] }
        type.cast(value, **read)
      rescue Type::Invalid => e
        raise Type::Invalid, e.message.start_with?(title) ? e.message : "#{title} #{e.message}"
      end

      def export(value)
        repeatable? ? value.map { |one| type.export(one) } : type.export(value)
      end

      def write(value)
        repeatable? ? value.map { |one| type.write(one) }.join(", ") : type.write(value)
      end

      private

      # @return [Array(Object, Hash{Symbol => Object})] the value without the options that are written in it, and these
      def split_options(value)
        rest, parts = type.split_options(value)
        wrong = parts.keys.find { |key| !options.key?(key) } or return [rest, parts]

        raise Type::Invalid, "has no option #{wrong}: (in #{value.inspect}).#{Suggestion.for(wrong, options.keys)}"
      end

      def cast_option(key, written)
        options.fetch(key).type.cast(written)
      rescue Type::Invalid => e
        raise Type::Invalid, "#{title} #{key}: #{e.message}"
      end
    end
  end
end
