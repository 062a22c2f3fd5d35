# frozen_string_literal: true

require "pando/errors"
require "pando/suggestion"

module Pando
  # A user's hook raised. The original error is the `cause`.
  class HookError
    # @return [Symbol, nil] the hook's name
    attr_reader :hook
    # @return [String, nil] `file:line` of its block
    attr_reader :location

    # @param message [String, nil]
    # @param hook [Symbol, nil]
    # @param location [String, nil]
    def initialize(message = nil, hook: nil, location: nil)
      super(message)
      @hook = hook
      @location = location
    end
  end

  # The blocks that a config file registers for moments in the life of the server. Owned by the Config. The monitor and
  # generation 0's mold each read the file and so have their own copy, which forked children inherit.
  #
  #     hooks.add(:after_worker_fork) { |server, worker| Database.connect }
  #     hooks.run(:after_worker_fork, server, worker)
  class Hooks
    # One hook: the block's parameters, the process that runs it, and when.
    Known = Struct.new(:arguments, :process, :help)
    private_constant :Known

    # Every hook. docs/hooks.md shows this table; a test compares them.
    # @return [Hash{Symbol => Struct}]
    TABLE = {
      before_fork: Known.new(
        %i[server], "mold, or a worker to be promoted",
        "Before each fork: close or disconnect what a child must not share."
      ),
      after_mold_fork: Known.new(
        %i[server mold], "mold", "In a new mold, generation 0's too, before it forks its first worker."
      ),
      after_worker_fork: Known.new(
        %i[server worker], "worker", "In a new worker, before it reports ready: connect, start threads."
      ),
      after_worker_ready: Known.new(
        %i[server worker], "worker", "In a new worker, once it is set up: just before it reports ready and serves."
      ),
      self_check: Known.new(
        %i[server role], "mold, worker, service",
        "In a forked mold, worker or service, just before it reports ready: raise if it is not fit."
      ),
      after_worker_timeout: Known.new(
        %i[server worker error], "worker", "A request outlived its soft timeout and has been unwound."
      ),
      after_worker_hard_timeout: Known.new(
        %i[server worker], "monitor", "A request outlived its hard timeout and its worker is about to be killed."
      ),
      before_worker_exit: Known.new(
        %i[server worker], "worker", "In a worker that leaves, after its last request and its queued work."
      ),
      after_worker_exit: Known.new(
        %i[server worker ending], "monitor", "A worker process is gone, for whatever reason; `ending` says how."
      ),
      after_request_complete: Known.new(
        %i[server worker env], "worker", "After each request, when the client has its response."
      ),
      after_monitor_ready: Known.new(
        %i[server], "monitor", "Once, when the server listens, before the application is loaded."
      )
    }.each_value(&:freeze).freeze

    # @return [Array<Symbol>]
    NAMES = TABLE.keys.freeze
    # The hooks that the monitor itself runs.
    # @return [Array<Symbol>]
    OF_MONITOR = %i[after_monitor_ready after_worker_exit after_worker_hard_timeout].freeze

    # Exceptions that end the process or the request are not hook errors.
    PASSED_ON = [RequestTimeout, SystemExit, SignalException, NoMemoryError].freeze
    private_constant :PASSED_ON

    def initialize
      @blocks = {}
    end

    # Adds a block after the existing ones.
    #
    # @param name [Symbol] one of {NAMES}
    # @return [self]
    # @raise [ConfigError] if there is no such hook, or no block
    def add(name, &block)
      raise ConfigError, "unknown hook #{name.inspect}#{suggestion(name)}" unless TABLE.key?(name)
      raise ConfigError, "#{name} needs a block" unless block

      (@blocks[name] ||= []) << block
      self
    end

    # @param name [Symbol]
    # @return [Boolean] whether the hook has any block
    def any?(name) = @blocks.key?(name)

    # Runs the blocks in the order in which they were added, until one raises.
    #
    # @param name [Symbol] one of {NAMES}
    # @param arguments [Array<Object>]
    # @yieldparam line [String] before each block: the hook's name and the block's line
    # @return [nil]
    # @raise [HookError] a block raised, except for what ends the process (SystemExit, signals) or the request
    #   (RequestTimeout)
    def run(name, *arguments)
      raise ArgumentError, "unknown hook #{name.inspect}" unless TABLE.key?(name)

      @blocks[name]&.each do |block|
        yield "#{name} at #{location(block)}" if block_given?
        call(name, block, arguments)
      end
      nil
    end

    private

    def call(name, block, arguments)
      block.call(*arguments)
    rescue *PASSED_ON
      raise
    rescue Exception => error # rubocop:disable Lint/RescueException
      location = location(block)
      message = "#{name} hook at #{location} raised #{error.class}: #{error.message}"
      raise HookError.new(message, hook: name, location: location)
    end

    def location(block) = block.source_location&.join(":") || "unknown line"

    def suggestion(name)
      near = Suggestion.nearest(name, NAMES)
      near && "; did you mean #{near}?"
    end
  end
end
