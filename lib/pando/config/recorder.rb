# frozen_string_literal: true

require "pando/compat/names"
require "pando/config/values"
require "pando/events/catalogue"
require "pando/hooks"

module Pando
  class Config
    # Checks the statements of a config file one by one, and keeps them. An error
    # begins with the file and line of the statement.
    #
    # @api private
    class Recorder
      # A hook, a service or a subscription: its name, its block, and where it is defined.
      Block = Struct.new(:kind, :name, :block, :source) do
        # @return [String] how the statement begins
        def title
          { hook: name.to_s, service: "service #{name.inspect}", event: "on #{name.inspect}" }.fetch(kind)
        end
      end

      SERVICE_NAME = /\A[a-z][a-z0-9_-]{0,31}\z/i

      # @return [Hooks]
      attr_reader :hooks
      # @return [Array<Block>] in the order of the file
      attr_reader :blocks
      # @return [Array<PoolLine>] in the order of the file
      attr_reader :pools
      # @return [Array<NodeLine>] in the order of the file
      attr_reader :nodes

      # @param values [Values]
      # @param directory [String] absolute
      def initialize(values, directory)
        @values = values
        @directory = directory
        @hooks = Hooks.new
        @blocks = []
        @pools = []
        @nodes = []
      end

      # @param path [String] absolute
      # @return [String] the path as errors show it: relative to the directory if it is inside
      def shorten(path)
        path.delete_prefix("#{@directory}/")
      end

      # @return [Object, nil] the value, if the file asks a readable setting for it
      def setting(name, values, options, block, location)
        setting = Settings[name]
        where = where(location)
        return @values.value(setting) if values.empty? && options.empty? && setting&.readable?

        return if block && block_of_setting(name, block, where, values.empty? && options.empty?)

        values, options = with_second(name, values, options)
        apart, read_with = split(name, options, where)
        apart.each { |keyword, written| set_apart(keyword, written, where, setting) }
        value(setting || name, values, read_with, where, apart)
      end

      # @return [Object] the value
      def flag_only(setting, values, location)
        return @values.value(setting) if values.empty? && setting.readable?

        refuse(where(location), "#{setting.name} can only be set on the command line: #{setting.flags.first} " \
                                "#{setting.argument}")
      end

      def hook(name, values, block, location)
        where = where(location)
        refuse(where, "#{name} needs a block and nothing else") if !values.empty? || block.nil?

        hooks.add(name, &block)
        keep(:hook, name, block, where)
      end

      def on(name, block, location)
        where = where(location)
        usable = name.size == 1 && (name.first.is_a?(String) || name.first.is_a?(Symbol)) && block
        refuse(where, "on needs the name of an event and a block") unless usable

        keep(:event, event(name.first, where), block, where)
      end

      def service(name, block, location)
        where = where(location)
        name = name.first if name.size == 1
        usable = name.is_a?(Symbol) && name.match?(SERVICE_NAME) && block
        refuse(where, "service needs a name such as :mailer and a block") unless usable
        refuse(where, "service #{name.inspect} is declared twice") if blocks.any? { |one| one.name == name }

        keep(:service, name, block, where)
      end

      def pool(name, options, block, location)
        require "pando/config/pool_line"
        where = where(location)
        refuse(where, "pool takes no block") if block
        usable = name.size == 1 && name.first.is_a?(Symbol)
        refuse(where, "pool needs one name, a Symbol, and paths: pool :reports, paths: [\"/reports\"]") unless usable
        add_pool(PoolLine.new(name.first, options, where))
      end

      # @param line [PoolLine]
      def add_pool(line)
        line.check_beside(pools)
        pools << line
        nil
      end

      def node(runner, options, block, location)
        require "pando/config/node_line"
        where = where(location)
        refuse(where, "node needs one name such as :sidekiq") unless runner.size == 1
        add_node(NodeLine.read(runner.first, options, block, where))
      end

      # @param line [NodeLine]
      def add_node(line)
        same = nodes.find { |other| other.name == line.name }
        if same
          refuse(line.source, "there is a node #{line.name.inspect} already (#{same.source}): give one of them " \
                              "another name, such as name: \"#{line.name}_2\"")
        end

        nodes << line
        nil
      end

      # @raise [ConfigError]
      def unknown(name, location)
        name = name.name
        known = [*Settings.file_names, *Hooks::NAMES, :on, :service, :pool, :node].map(&:name)
        assigned = name.delete_suffix("=")
        hint = Compat::Names.hint(assigned)
        hint ||= "Write #{assigned} without the equals sign." if known.include?(assigned)
        refuse(where(location), "unknown setting #{name}.#{hint ? " #{hint}" : Suggestion.for(assigned, known)}")
      end

      private

      def where(location)
        "#{shorten(location.path)}:#{location.lineno}"
      end

      def refuse(where, message)
        raise ConfigError, "#{where}: #{message}"
      end

      # A hook may have the same name as the setting that turns it off.
      # @return [Boolean] whether the statement has only a block
      def block_of_setting(name, block, where, alone)
        refuse(where, "#{name} takes no block") unless Hooks::NAMES.include?(name)

        hooks.add(name, &block)
        keep(:hook, name, block, where)
        alone
      end

      def keep(kind, name, block, where)
        blocks << Block.new(kind, name, block, where)
        nil
      end

      def event(name, where)
        Events::Catalogue.check(name)
      rescue ConfigError => e
        refuse(where, e.message)
      end

      # Some settings read a second value as one of their keywords: `access_log "log/access.log", :json`.
      def with_second(name, values, options)
        keyword, = Settings.keywords_of(name).find { |_, setting| setting.second? } if values.size == 2
        return [values, options] if keyword.nil? || options.key?(keyword)

        [values.first(1), { keyword => values.last, **options }]
      end

      # The keywords that are settings themselves, by setting, and those that belong to the value.
      def split(name, options, where)
        keywords = Settings.keywords_of(name)
        read_with = Settings[name]&.options || {}
        wrong = options.keys.find { |key| !keywords.key?(key) && !read_with.key?(key) }
        return [options.slice(*keywords.keys).transform_keys(keywords), options.slice(*read_with.keys)] unless wrong

        refuse(where, "#{name} has no option #{wrong}:.#{Suggestion.for(wrong, [*keywords.keys, *read_with.keys])}")
      end

      def value(setting, values, options, where, apart)
        return without_value(setting, options, where, apart) if values.empty?

        refuse(where, "#{setting} takes only options: #{names(setting)}") if setting.is_a?(Symbol)
        refuse(where, "#{setting.name} takes #{most(setting)}, but was given #{values.size}") if values.size > 1
        set(setting, values.first, where, options)
      end

      def most(setting)
        second, = Settings.keywords_of(setting.name).find { |_, one| one.second? }
        second ? "one value, and its #{second}" : "one value"
      end

      def without_value(setting, options, where, apart)
        return set(setting, nil, where, options) if options.any? && setting.type.optional?
        return if apart.any? && options.empty?

        refuse(where, "#{setting} needs an option: #{names(setting)}") if setting.is_a?(Symbol)
        refuse(where, "#{setting.name} needs a value: it must be #{setting.type.expects}")
      end

      # A keyword of a setting that may be repeated holds for all its values.
      def set_apart(keyword, written, where, setting)
        earlier = @values.in_file[keyword.name]&.last if setting&.repeatable?
        set(keyword, written, where)
        return if earlier.nil? || earlier.value == @values.value(keyword)

        refuse(where, "#{keyword.keyword}: holds for all addresses of #{setting.name}, and #{earlier.source} has " \
                      "another value: write it once")
      end

      def names(name)
        *first, last = Settings.keywords_of(name).keys.map { |keyword| "#{keyword}:" }
        first.empty? ? last : "#{first.join(", ")} or #{last}"
      end

      def set(setting, written, where, options = {})
        @values.set_by_file(setting, Values.cast(setting, written, where, options), where)
        nil
      end
    end
  end
end
