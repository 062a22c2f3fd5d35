# frozen_string_literal: true

module Pando
  module ForkSafety
    module Libraries
      # Looks for constants without loading anything.
      #
      # @api private
      module Constants
        # @param path [String] "Redis::Client"
        # @return [Object, nil] nil too where it would have to be autoloaded
        def self.find(path)
          path.split("::").inject(Object) { |parent, name| child(parent, name) or break }
        end

        def self.child(parent, name)
          return unless parent.is_a?(Module) && parent.const_defined?(name, false) && !parent.autoload?(name, false)

          parent.const_get(name, false)
        end
        private_class_method :child
      end
    end
  end
end
