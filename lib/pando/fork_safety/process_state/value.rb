# frozen_string_literal: true

module Pando
  module ForkSafety
    class ProcessState
      # One value: the identity that is compared, and the words that are shown. A renamed file stays the same file.
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
