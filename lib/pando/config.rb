# frozen_string_literal: true

require "pando/errors"
require "pando/config/loader"

module Pando
  # The effective settings, each with its source: a flag, the config file, an environment variable or the default, in
  # this order of precedence.
  #
  #   config = Pando::Config.load(%w[-w 4 -l 127.0.0.1:3000])
  #   config.workers          # => 4
  #   config.source(:workers) # => "-w"
  #
  # The monitor loads it, and so does each mold that boots from cold: it gets #argv, and so the same settings. Forked
  # processes inherit it. There is a reader for each setting of Config::Settings. Frozen.
  class Config
    # The name of the pool of all paths that no other pool has.
    # @api private
    WEB = "web"

    # Whether there are neither workers nor nodes.
    class NothingToRun < ConfigError; end

    # @return [Array<String>] arguments that load this configuration again, from any directory
    attr_reader :argv
    # @return [Hooks]
    attr_reader :hooks
    # @return [Array<Config::PathPool>] the pools for some paths, in the order of the file
    attr_reader :pools
    # @return [Array<Config::NodeKind>] the kinds of job nodes, in the order of the file
    attr_reader :nodes
    # What the file says, as written: Recorder::Blocks, PoolLines and NodeLines in its order, and the Values::Entrys of
    # each setting by its name.
    # @api private
    attr_reader :blocks, :pool_lines, :node_lines, :in_file

    # @param argv [Array<String>, Flags] the command line without the command
    # @param env [Hash{String => String}]
    # @param dir [String] the directory; a relative -C is resolved against it
    # @param file [Boolean] whether to read the config file
    # @return [Config]
    # @raise [UsageError] the command line is wrong
    # @raise [ConfigError] a setting or the file is wrong; the message says where
    def self.load(argv, env: ENV, dir: Dir.pwd, file: true)
      flags = argv.is_a?(Flags) ? argv : Flags.parse(argv)
      new(Loader.new(flags, env, dir).load(file: file))
    end

    # Does the same with a file that another process has run.
    #
    # @param statements [Array<Array(String, Hash{String => String})>] the content of the file, see Loader
    # @return [Config]
    # @raise [ConfigError]
    # @api private
    def self.replay(argv, statements, env: ENV, dir: Dir.pwd)
      new(Loader.new(Flags.parse(argv), env, dir, statements).load)
    end

    Settings.all.map(&:name).each do |name|
      define_method(name) { @resolved.fetch(name) }
    end

    private_class_method :new

    # @api private
    def initialize(loader)
      @argv = loader.argv.freeze
      take_file(loader)
      @pools = @nodes = [].freeze # those of a pool's own configuration
      take_settings(loader)
      @pools = path_pools
      @nodes = @node_lines.map { |line| line.kind(self) }.freeze
      check
      freeze
    end

    # @return [Hash{Symbol => Proc}] the block of each service by its name
    def services
      blocks.select { |one| one.kind == :service }.to_h { |one| [one.name, one.block] }
    end

    # @return [Array<Recorder::Block>] #name and #block of each `on`, to pass to Events.subscribe
    def subscriptions = blocks.select { |one| one.kind == :event }

    # @param values [Hash{Symbol => Object}] of settings
    # @return [Config] the same with these values, which are not checked
    # @api private
    def with(values) = dup.tap { |copy| copy.replace(values) }.freeze

    # @return [Hash{Symbol => Integer}] surge: and unavailable:
    def rollout = { surge: rollout_surge, unavailable: rollout_unavailable }

    # @param name [Symbol] of a setting
    # @return [String] "default", "config/pando.rb:3", "--workers", "WEB_CONCURRENCY"; several are joined by commas
    def source(name) = @entries.fetch(name).map(&:source).uniq.join(", ")

    # @param name [Symbol] of a setting
    # @return [Boolean] whether the default applies
    def default?(name)
      @entries.fetch(name).all? { |entry| Situation::SOURCES.include?(entry.source) }
    end

    # @param name [Symbol] of a setting
    # @return [Boolean] whether the value from the config file applies
    def from_file?(name) = entries(name) == in_file[name]

    # @param name [Symbol] of a setting
    # @return [Array<Values::Entry>] value as written and source; several for `listen`
    # @api private
    def entries(name) = @entries.fetch(name)

    # @param path [String, nil] absolute
    # @return [String, nil] as people write it: relative to the directory, if it is below it
    # @api private
    def short(path) = path&.delete_prefix("#{directory}/")

    # @return [String] the path of the rackup file
    # @raise [ConfigError] it is needed and does not exist
    def require_rackup
      return rackup if workers.zero? || File.file?(rackup)

      where = default?(:rackup) ? "" : "#{source(:rackup)}: "
      raise ConfigError, "#{where}there is no rackup file #{rackup}. Name one: pando RACKUP"
    end

    protected

    def replace(values)
      @resolved = @resolved.merge(values).freeze
    end

    private

    def take_file(loader)
      @hooks = loader.recorder.hooks
      @blocks = loader.recorder.blocks.freeze
      @pool_lines = loader.recorder.pools.freeze
      @node_lines = loader.recorder.nodes.freeze
      @in_file = loader.in_file
    end

    def take_settings(loader)
      @entries = Settings.all.to_h { |setting| [setting.name, loader.entries(setting)] }.freeze
      @resolved = Settings.all.to_h { |setting| [setting.name, resolve(setting, loader.directory)] }.freeze
      fit_threads if source(:threads) == Threads::VARIABLE
    end

    # The number of threads that applies replaces the one of the variable.
    def fit_threads
      number = Threads.fitting(self, @pool_lines)
      @entries = @entries.merge(threads: [Values::Entry.new(number, Threads::VARIABLE)].freeze).freeze
      replace(threads: number)
    end

    def path_pools = @pool_lines.map { |line| line.pool(self) }.freeze

    def resolve(setting, directory)
      values = entries(setting.name).map do |entry|
        setting.type.resolved(entry.value, directory)
      rescue ArgumentError => e
        raise ConfigError, "#{entry.source}: #{setting.title.delete_suffix(":")}: #{e.message}"
      end
      setting.repeatable? ? values.freeze : values.last
    end

    def check
      if workers.zero? && nodes.empty?
        raise NothingToRun, "#{source(:workers)}: workers is 0 and the config file has no node line: nothing to run"
      end

      Settings.all.each do |setting|
        wrong = setting.check&.call(@resolved.fetch(setting.name), self) || idle(setting)
        raise ConfigError, "#{source(setting.name)}: #{setting.title} #{wrong}" if wrong
      end
    end

    # Reports a keyword that has no effect with the setting's value. It is not an error if only a flag has changed that
    # value.
    def idle(setting)
      return if setting.serves.nil? || setting.serves.call(self) || entries(setting.name).last.value == setting.default
      return unless from_file?(setting.within)

      "has no effect with #{setting.within} #{Settings[setting.within].write(@resolved[setting.within])}: leave it out"
    end
  end
end
