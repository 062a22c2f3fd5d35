# frozen_string_literal: true

require "pando/fork_safety/callbacks/errors"

module Pando
  module ForkSafety
    module Callbacks
      # What one library wants around each fork. A value; owned by the registry.
      #
      # @api private
      class Entry
        # What ends the process or the request belongs to whoever asked for it.
        PASSED_ON = [RequestTimeout, SystemExit, SignalException, NoMemoryError].freeze
        SIDES = { before: "before a fork", parent: "in the parent after a fork",
                  child: "in the child after a fork" }.freeze

        attr_reader :key

        # @param callables [Hash{Symbol => #call, nil}] by :before, :parent, :child
        # @param caller_line [String] names those that have no line of their own
        def initialize(key, callables, caller_line)
          @key = key
          @callables = callables.compact
          @caller_line = caller_line
          freeze
        end

        # @raise [ForkRefused]
        def before
          @callables[:before]&.call
        rescue *PASSED_ON, ForkRefused
          raise
        rescue Exception => error # rubocop:disable Lint/RescueException
          raise ForkRefused.new(words(:before, error), key: key, location: location(:before))
        end

        # @param side [Symbol] :parent or :child
        # @return [CallbackFailed, nil]
        def after(side)
          @callables[side]&.call
          nil
        rescue *PASSED_ON
          raise
        rescue Exception => error # rubocop:disable Lint/RescueException
          failure(side, error)
        end

        private

        def failure(side, error)
          raise CallbackFailed.new(words(side, error), side: side, key: key, location: location(side)), cause: error
        rescue CallbackFailed => failure
          failure # raised to have its cause and backtrace
        end

        def words(side, error)
          "callback #{name} #{SIDES.fetch(side)} at #{location(side)} raised #{error.class}: #{error.message}"
        end

        def name = key.is_a?(String) || key.is_a?(Symbol) ? key : key.class

        def location(side)
          callable = @callables[side]
          (callable.source_location&.join(":") if callable.respond_to?(:source_location)) || @caller_line
        end
      end
    end
  end
end
