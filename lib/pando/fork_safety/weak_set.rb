# frozen_string_literal: true

module Pando
  module ForkSafety
    # A set of objects, by identity, that does not keep them alive. What uses it lives in molds, workers and services.
    #
    # Each object is its own value in the WeakMap. Ruby 3.1.2 looks only at the values when it lists the keys (bug 18586
    # of Ruby). With `true` as the value, a list has objects that are dead, and the next garbage collection may abort
    # the process.
    #
    # @api private
    class WeakSet
      def initialize
        @map = ObjectSpace::WeakMap.new
      end

      # @param object [Object]
      # @return [WeakSet] self
      def add(object)
        @map[object] = object
        self
      end

      # @param object [Object]
      def include?(object) = @map.key?(object)

      # @return [Array<Object>] those that are alive
      def to_a = @map.keys
    end
  end
end
