# frozen_string_literal: true

module Pando
  module ForkSafety
    module Audit
      # Descriptors that were declared harmless, by the address of their peer or by their path:
      # "10.0.0.5:6379", "*:8125", "/run/collector.sock", "/srv/data/*". As File.fnmatch reads
      # them; a star matches slashes too.
      #
      # @api private
      class Patterns
        # @param patterns [Array<String>]
        def initialize(patterns)
          @patterns = patterns
        end

        # @param descriptor [Descriptor]
        def match?(descriptor)
          return false if @patterns.empty?

          names = descriptor.socket? ? [descriptor.peer, descriptor.local].compact : [descriptor.target]
          names.any? { |name| @patterns.any? { |pattern| File.fnmatch(pattern, name) } }
        end
      end
    end
  end
end
