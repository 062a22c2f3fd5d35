# frozen_string_literal: true

module Pando
  module ForkSafety
    # A set of objects, by identity, that does not keep them alive. Used in molds, workers and services.
    #
    # Each object is its own value in the WeakMap. Ruby 3.1.2 checks only the values when it lists the keys (Ruby bug
    # 18586). With `true` as the value, a list would contain dead objects, and the next GC might abort the process.
    class WeakSet
      def initialize
        @map = ObjectSpace::WeakMap.new
      end

      def add(object)
        @map[object] = object
        self
      end

      def include?(object) = @map.key?(object)

      # @return [Array<Object>] the live objects
      def to_a = @map.keys
    end
  end
end
