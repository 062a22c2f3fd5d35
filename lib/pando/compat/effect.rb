# frozen_string_literal: true

require "pando/compat/names"
require "pando/compat/settings"
require "pando/compat/static_value"
require "pando/config"

module Pando
  module Compat
    # Whether Pando already does what a statement of Puma's config file asks for, without having read it: by default, by
    # an environment variable, or because a flag overrides the setting, as it would in Puma.
    #
    # UnreadFile uses it.
    #
    # @api private
    class Effect
      # Statements that ask for what Pando always does.
      ALWAYS = %w[worker_timeout].freeze
      # Settings that matter only where several requests are served at once.
      NOT_IN_DEVELOPMENT = %w[workers threads max_threads min_threads].freeze
      MAX_THREADS = %w[RAILS_MAX_THREADS RAILS_MIN_THREADS MAX_THREADS MIN_THREADS].freeze
      # Remarks on lines that are left out although Pando does not do what they ask for.
      MISSING = [Names::SERVICE_MANAGER, Names::ONE_THREAD].freeze
      PROCESSORS = /\bEtc\.nprocessors\b/
      # Settings with a rule of their own.
      ASKED = { "port" => :port?, "bind" => :bound?, "workers" => :workers?, "threads" => :threads?,
                "max_threads" => :threads?, "min_threads" => :threads?, "pidfile" => :pidfile?, "pid" => :pidfile?,
                "plugin" => :plugin?, "fork_worker" => :refork? }.freeze
      NOTHING = /\A(?:Leave it out|The default is|It has no value)/
      SETTINGS = { "port" => :listen, "bind" => :listen, "pid" => :pidfile }.freeze
      private_constant :ALWAYS, :NOT_IN_DEVELOPMENT, :MAX_THREADS, :MISSING, :PROCESSORS, :ASKED, :NOTHING, :SETTINGS

      # @param statement [Statement]
      # @param result [Settings::Result] its translation
      # @return [Boolean] whether the statement would do nothing
      def self.none?(statement, result)
        return true if result.text == statement.text # plain Ruby
        return true if statement.name.start_with?("require") || ALWAYS.include?(statement.name)

        result.left_out? && result.remark.match?(NOTHING) && !MISSING.include?(result.remark)
      end

      # @param config [Config] the effective settings
      # @param values [StaticValue]
      def initialize(config, values)
        @config = config
        @values = values
      end

      # @param statement [Statement]
      # @return [Boolean]
      def had?(statement)
        name = statement.name
        setting = Config::Settings[SETTINGS[name] || Settings::RENAMED.fetch(name, name).to_sym]
        return true if setting && @config.source(setting.name).start_with?("-")
        return true if development? && NOT_IN_DEVELOPMENT.include?(name)

        asked = ASKED[name]
        asked ? send(asked, *statement.arguments.first(2)) : same?(setting, statement.arguments.first)
      end

      private

      def development? = %w[development test].include?(@config.environment)

      def port?(port = nil, host = nil)
        value = port && @values.of(port)
        return listens_on?("#{@values.of(host)}:#{value}") if value && host

        value.nil? || @config.listen.any? { |listen| listen.tcp? && listen.port.to_s == value }
      end

      def bound?(address = nil, *)
        value = address && @values.of(address)
        value.is_a?(String) && listens_on?(value.sub(/\?.*\z/m, ""))
      end

      def listens_on?(address)
        @config.listen.include?(Config::Listen.parse(address).in(@config.directory))
      rescue ArgumentError
        false
      end

      # The default is one worker per CPU.
      def workers?(count = nil, *)
        value = count && @values.of(count)
        return true if value.nil? || value == @config.workers.to_s

        @config.default?(:workers) && (value == "auto" || (!value.is_a?(String) && PROCESSORS.match?(count)))
      end

      # Notices reports variables that ask for several threads separately.
      def threads?(*counts)
        counts.all? { |count| @values.from?(count, MAX_THREADS) || %w[0 1].include?(@values.of(count)) }
      end

      # Rails' own line names a file that Pando writes if PIDFILE is set.
      def pidfile?(path = nil, *)
        path.nil? || @values.from?(path, ["PIDFILE"]) || same?(Config::Settings[:pidfile], path)
      end

      # Notices reports SOLID_QUEUE_IN_PUMA separately.
      def plugin?(name = "", *)
        case name.delete(":\"'")
        when "tmp_restart" then !@config.restart_file.nil?
        when "solid_queue" then @config.nodes.any? { |kind| kind.runner == :solid_queue } || @values.wants_jobs?
        end
      end

      # Without a number, Puma's fork_worker reforks when it pays, which is Pando's default.
      def refork?(after = nil, *) = after.nil?

      def same?(setting, argument)
        value = argument && @values.of(argument)
        return !setting.nil? && value.nil? unless setting && value.is_a?(String)

        setting.resolved(setting.cast(value, {}), @config.directory) == @config.public_send(setting.name)
      rescue Config::Type::Invalid, ArgumentError
        false
      end
    end
  end
end
