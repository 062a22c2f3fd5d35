# frozen_string_literal: true

require "pando/errors"
require "pando/suggestion"

module Pando
  # The blocks that a config file registers for moments in the life of the server. Owned by the Config. The monitor and
  # generation 0's mold each read the file and so have their own copy, which forked children inherit.
  #
  #     hooks.add(:after_worker_fork) { |server, worker| Database.connect }
  #     hooks.run(:after_worker_fork, server, worker)
  class Hooks
    # Every hook, in the order of docs/hooks.md, which explains them. A test compares the names.
    # @return [Array<Symbol>]
    NAMES = %i[before_fork after_mold_fork after_worker_fork after_worker_ready self_check after_worker_timeout
               after_worker_hard_timeout before_worker_exit after_worker_exit after_request_complete
               after_monitor_ready].freeze
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
      raise ConfigError, "unknown hook #{name.inspect}#{suggestion(name)}" unless NAMES.include?(name)
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
      raise ArgumentError, "unknown hook #{name.inspect}" unless NAMES.include?(name)

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
