# frozen_string_literal: true

require "pando/errors"

module Pando
  module ForkSafety
    # A callback raised before a fork, so the fork did not take place. The `cause` is its error.
    class ForkRefused < Error
      # @return [Object] the key under which the callback was registered
      attr_reader :key
      # @return [String, nil] `file:line` of the callback
      attr_reader :location

      # @param message [String]
      def initialize(message, key: nil, location: nil)
        super(message)
        @key = key
        @location = location
      end
    end

    # A callback raised after a fork. The `cause` is its error.
    class CallbackFailed < Error
      # @return [Symbol] :parent or :child
      attr_reader :side
      # @return [Object] the key under which the callback was registered
      attr_reader :key
      # @return [String, nil] `file:line` of the callback
      attr_reader :location

      # @param message [String]
      def initialize(message, side: nil, key: nil, location: nil)
        super(message)
        @side = side
        @key = key
        @location = location
      end
    end
  end
end
