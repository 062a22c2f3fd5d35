# frozen_string_literal: true

require "pando/compat/names"
require "pando/config/settings"
require "pando/events/catalogue"
require "pando/hooks"

module Pando
  class Config
    autoload :NodeLine, "pando/config/node_line"
    autoload :PoolLine, "pando/config/pool_line"

    # Checks the statements of a config file one by one, and keeps them. An error begins with the file and line of the
    # statement.
    #
    # @api private
    class Recorder
      # A hook, a service or a subscription: its name, its block, and where it is defined.
      Block = Struct.new(:kind, :name, :block, :source) do
        def title
          { hook: name.to_s, service: "service #{name.inspect}", event: "on #{name.inspect}" }.fetch(kind)
        end
      end

      SERVICE_NAME = /\A[a-z][a-z0-9_-]{0,31}\z/i

      # The methods of a config file by the kind of their statement, which is the name of the method here that reads it.
      STATEMENTS = { setting: Settings.file_names, flag_only: Settings.all.select(&:flag_only?).map(&:name),
                     hook: Hooks::NAMES - Settings.file_names,
                     on: %i[on], service: %i[service], pool: %i[pool], node: %i[node] }.freeze

      # What the file says, in its order: a Hooks, Blocks, PoolLines and NodeLines.
      attr_reader :hooks, :blocks, :pools, :nodes

      def initialize(values, directory)
        @values = values
        @directory = directory
        @hooks = Hooks.new
        @blocks = []
        @pools = []
        @nodes = []
      end

      # @return [String] the path as errors show it: relative to the directory if it is inside
      def shorten(path) = path.delete_prefix("#{@directory}/")

      # @param kind [Symbol] a key of STATEMENTS
      # @param location [Thread::Backtrace::Location] the line of the statement
      # @return [Object, nil] the value, if the file asks a readable setting for it
      def record(kind, name, values, options, block, location)
        at(location)
        send(kind, name, values, options, block)
      end

      def unknown(name, location)
        at(location)
        name = name.name
        known = STATEMENTS.except(:flag_only).values.flatten.map(&:name)
        assigned = name.delete_suffix("=")
        hint = Compat::Names.hint(assigned)
        hint ||= "Write #{assigned} without the equals sign." if known.include?(assigned)
        refuse("unknown setting #{name}.#{hint ? " #{hint}" : Suggestion.for(assigned, known)}")
      end

      def add_pool(line)
        line.check_beside(pools, nodes)
        pools << line
        nil
      end

      def add_node(line)
        same = [*pools, *nodes].find { |other| other.name == line.name }
        if same
          kind = same.is_a?(PoolLine) ? "pool" : "node"
          raise ConfigError, "#{line.source}: there is a #{kind} #{line.name.inspect} already (#{same.source}): give " \
                             "one of them another name, such as name: \"#{line.name}_2\""
        end

        nodes << line
        nil
      end

      private

      def at(location)
        @where = "#{shorten(location.path)}:#{location.lineno}"
      end

      def refuse(message) = raise(ConfigError, "#{@where}: #{message}")

      def setting(name, values, options, block)
        setting = Settings[name]
        alone = values.empty? && options.empty?
        return @values.value(setting) if alone && setting&.readable?
        return if block && block_of_setting(name, block, alone)

        values, options = with_second(name, values, options)
        apart, read_with = split(name, options)
        apart.each { |keyword, written| set_apart(keyword, written, setting) }
        value(setting || name, values, read_with, apart)
      end

      def flag_only(name, values, options, _block)
        setting = Settings[name]
        return @values.value(setting) if values.empty? && options.empty? && setting.readable?

        refuse("#{name} can only be set on the command line: #{setting.flags.first} #{setting.argument}")
      end

      def hook(name, values, options, block)
        refuse("#{name} needs a block and nothing else") unless values.empty? && options.empty? && block

        add_hook(name, block)
      end

      def on(_on, values, options, block)
        name = values.first
        usable = values.size == 1 && options.empty? && (name.is_a?(String) || name.is_a?(Symbol)) && block
        refuse("on needs the name of an event and a block") unless usable

        keep(:event, event(name), block)
      end

      def service(_service, values, options, block)
        name = values.first
        usable = values.size == 1 && options.empty? && name.is_a?(Symbol) && name.match?(SERVICE_NAME) && block
        refuse("service needs a name such as :mailer and a block") unless usable
        refuse("service #{name.inspect} is declared twice") if blocks.any? { |one| one.name == name }

        keep(:service, name, block)
      end

      def pool(_pool, values, options, block)
        refuse("pool takes no block") if block
        usable = values.size == 1 && values.first.is_a?(Symbol)
        refuse("pool needs one name, a Symbol, and paths: pool :reports, paths: [\"/reports\"]") unless usable
        add_pool(PoolLine.new(values.first, options, @where))
      end

      def node(_node, values, options, block)
        refuse("node needs one name such as :sidekiq") unless values.size == 1
        add_node(NodeLine.read(values.first, options, block, @where))
      end

      # A hook may have the same name as the setting that turns it off.
      # @return [Boolean] whether the statement has only a block
      def block_of_setting(name, block, alone)
        refuse("#{name} takes no block") unless Hooks::NAMES.include?(name)

        add_hook(name, block)
        alone
      end

      def add_hook(name, block)
        hooks.add(name, &block)
        keep(:hook, name, block)
      end

      def keep(kind, name, block)
        blocks << Block.new(kind, name, block, @where)
        nil
      end

      def event(name)
        Events::Catalogue.check(name)
      rescue ConfigError => e
        refuse(e.message)
      end

      # Some settings read a second value as one of their keywords: `access_log "log/access.log", :json`.
      def with_second(name, values, options)
        keyword = second_of(name) if values.size == 2
        return [values, options] if keyword.nil? || options.key?(keyword)

        [values.first(1), { keyword => values.last, **options }]
      end

      def second_of(name) = Settings.keywords_of(name).find { |_, setting| setting.second? }&.first

      # The keywords that are settings themselves, by setting, and those that belong to the value.
      def split(name, options)
        keywords = Settings.keywords_of(name)
        read_with = Settings[name]&.options || {}
        wrong = options.keys.find { |key| !keywords.key?(key) && !read_with.key?(key) }
        return [options.slice(*keywords.keys).transform_keys(keywords), options.slice(*read_with.keys)] unless wrong

        refuse("#{name} has no option #{wrong}:.#{Suggestion.for(wrong, [*keywords.keys, *read_with.keys])}")
      end

      def value(setting, values, options, apart)
        return without_value(setting, options, apart) if values.empty?

        refuse("#{setting} takes only options: #{names(setting)}") if setting.is_a?(Symbol)
        refuse("#{setting.name} takes #{most(setting)}, but was given #{values.size}") if values.size > 1
        set(setting, values.first, options)
      end

      def most(setting)
        second = second_of(setting.name)
        second ? "one value, and its #{second}" : "one value"
      end

      def without_value(setting, options, apart)
        return set(setting, nil, options) if options.any? && setting.type.optional?
        return if apart.any? && options.empty?

        refuse("#{setting} needs an option: #{names(setting)}") if setting.is_a?(Symbol)
        refuse("#{setting.name} needs a value: it must be #{setting.type.expects}")
      end

      # A keyword of a setting that may be repeated holds for all its values.
      def set_apart(keyword, written, setting)
        earlier = @values.in_file[keyword.name]&.last if setting&.repeatable?
        set(keyword, written)
        return if earlier.nil? || earlier.value == @values.value(keyword)

        refuse("#{keyword.keyword}: holds for all addresses of #{setting.name}, and #{earlier.source} has another " \
               "value: write it once")
      end

      def names(name)
        *first, last = Settings.keywords_of(name).keys.map { |keyword| "#{keyword}:" }
        first.empty? ? last : "#{first.join(", ")} or #{last}"
      end

      def set(setting, written, options = {})
        @values.set_by_file(setting, Values.cast(setting, written, @where, options), @where)
        nil
      end
    end
  end
end
