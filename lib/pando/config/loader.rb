# frozen_string_literal: true

require "pando/compat/solid_queue"
require "pando/config/flags"
require "pando/config/ruby_file"
require "pando/config/settings"

module Pando
  class Config
    # The values of each setting from each source. A flag beats the config file,
    # the file beats an environment variable, the variable beats the default.
    # Owned by a Loader.
    #
    # @api private
    class Values
      # A value and where it was written.
      Entry = Struct.new(:value, :source)

      # Whether the config file is config/swarm.rb.
      attr_writer :swarm

      # @param directory [String, nil] absolute, of the application
      def initialize(env, directory = nil)
        @env = env
        @directory = directory
        @swarm = false
        @flags = {}
        @file = {}
      end

      # @param flag [String] as it was typed
      def set_by_flag(setting, text, flag)
        add(@flags, setting, Values.cast(setting, text, flag), flag)
      end

      # @param source [String] "config/pando.rb:3"
      def set_by_file(setting, value, source)
        add(@file, setting, meant(setting, value), source)
      end

      def set_by_file?(name) = @file.key?(name)

      # @return [Hash{Symbol => Array<Entry>}] the values from the file, by the setting's name
      def in_file = @file

      # @return [Array<Entry>] the effective values; several only if the setting is repeatable
      def entries(setting)
        @flags[setting.name] || @file[setting.name] || from_env(setting) || default(setting)
      end

      def value(setting) = entries(setting).last.value

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
        return if setting.shared_env? && value(Settings[:workers]).eql?(0)

        name = variable(setting) or return
        text = setting.shared_env? ? setting.type.nearest(@env[name]) : @env[name]
        [Entry.new(meant(setting, Values.cast(setting, text, name)), name)]
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

        Situation.default_of(setting, value(Settings[:environment]), @directory, swarm: @swarm)
      end
    end

    # Reads the flags and the config file for a new Config. The result depends only on the arguments, the environment,
    # the directory and the file, because the mold must load the same settings again.
    #
    # @api private
    class Loader
      DEFAULT_FILE = "config/pando.rb"
      # That of `pando swarm`.
      SWARM_FILE = "config/swarm.rb"

      # @return [String] absolute
      attr_reader :directory
      attr_reader :recorder

      # @param dir [String] a relative -C is resolved against it
      # @param statements [Array<Array(String, Hash{String => String})>, nil] what the file says, if another process has
      #   run it (see Server::Transcript). The blocks stay in that process; of services only the names are known
      def initialize(flags, env, dir, statements = nil)
        @flags = flags
        @env = env
        @statements = statements
        @directory = find_directory(dir)
        @values = Values.new(env, @directory)
        @recorder = Recorder.new(@values, @directory)
      end

      def load(file: true)
        @flags.given.each { |given| @values.set_by_flag(given.setting, given.text, given.source) }
        @config_file = find_config_file if file
        @values.swarm = @config_file == File.join(directory, SWARM_FILE)
        read_file if @config_file
        add_solid_queue if file && @env.key?(Compat::SolidQueue::VARIABLE)
        self
      end

      def in_file = @values.in_file

      def entries(setting)
        found = { directory: directory, config_file: @config_file }
        entries = @values.entries(setting)
        found.key?(setting.name) ? [Values::Entry.new(found[setting.name], entries.last.source)] : entries
      end

      # @return [Array<String>] arguments that mean the same in any directory
      def argv = ["-C", directory, *@flags.argv(more: config_file_flag)]

      private

      # A file that was found is named from then on. A release without it is refused, and does not get the defaults.
      def config_file_flag = @config_file && !@flags.last(:config_file) ? ["-c", DEFAULT_FILE] : []

      # Symbolic links stay unresolved: a link such as `current` may lead to another release when the mold boots again.
      # In the locale C, Ruby takes their bytes for ASCII, which cannot be joined with a path in the config file.
      def find_directory(dir)
        dir = utf8(dir)
        given = @flags.last(:directory) or return File.expand_path(dir)

        File.expand_path(utf8(given.text), dir).tap do |path|
          raise ConfigError, "#{given.flag}: there is no directory #{path}" unless File.directory?(path)
        end
      end

      def utf8(path) = path.dup.force_encoding(Encoding::UTF_8)

      def find_config_file
        given = @flags.last(:config_file)
        path = File.expand_path(given&.text || DEFAULT_FILE, directory)
        return path if File.exist?(path)

        refuse_without_file(given, path) if given
      end

      # The default name comes from #config_file_flag: no user has typed the flag.
      def refuse_without_file(given, path)
        where = "#{given.flag}: " unless given.text == DEFAULT_FILE
        raise ConfigError, "#{where}there is no config file #{path}"
      end

      def read_file
        # They need no directory: nothing is resolved here.
        return @statements.each { |word, said| repeat(word, said) } if @statements

        file = RubyFile.new(@config_file, recorder)
        File.identical?(".", directory) ? file.run(@values) : Dir.chdir(directory) { file.run(@values) }
      end

      def repeat(word, said)
        case word
        when "set" then repeat_setting(said)
        when "pool" then recorder.add_pool(PoolLine.from(said))
        when "node" then recorder.add_node(NodeLine.from(said))
        when "service" then recorder.blocks << Recorder::Block.new(:service, said.fetch("name"), nil, said["source"])
        end
      end

      # A setting that this version does not know concerns only the mold.
      def repeat_setting(said)
        setting = Settings.all.find { |one| one.name.name == said["name"] } or return
        options = setting.options.keys.to_h { |name| [name, said["option_#{name}"]] }.compact
        @values.set_by_file(setting, Values.cast(setting, said["value"], said["source"], options), said["source"])
      end

      # Adds the node that replaces Solid Queue's plugin for Puma.
      def add_solid_queue
        return if @values.value(Settings[:workers]).eql?(0) || recorder.nodes.map(&:runner).include?(:solid_queue)
        return unless Compat::SolidQueue.wanted?(@env) && Compat::SolidQueue.possible?(directory, @env)

        recorder.add_node(NodeLine.read(:solid_queue, Compat::SolidQueue::NODE, nil, Compat::SolidQueue::VARIABLE))
      end
    end
  end
end
