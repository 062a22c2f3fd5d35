# frozen_string_literal: true

module Pando
  module Cluster
    # Shortens #inspect of an object that refers to many others. Ruby shows the receiver in the message of a
    # NoMethodError, and would follow each reference.
    module Brief
      # @return [String]
      def inspect = "#<#{self.class}>"
    end
  end
end
