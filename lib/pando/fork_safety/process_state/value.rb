# frozen_string_literal: true

module Pando
  module ForkSafety
    class ProcessState
      # One thing of a process: what it is compared by, and what it is called. A file that is renamed is the same one.
      Value = Struct.new(:identity, :words) do
        def initialize(identity, words = identity)
          super
          freeze
        end

        def ==(other) = other.is_a?(self.class) && identity == other.identity
      end
    end
  end
end
