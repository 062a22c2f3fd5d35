# frozen_string_literal: true

require "pando/fork_safety/audit/descriptor"
require "pando/sys"

module Pando
  module ForkSafety
    module Audit
      # Descriptors that were declared harmless, by the address of their peer or by their path:
      # "10.0.0.5:6379", "[::1]:6379", "*:8125", "/run/collector.sock", "/srv/data/*". The syntax is that of
      # File.fnmatch without brackets; a star matches slashes too.
      #
      # @api private
      class Patterns
        # @param patterns [Array<String>]
        def initialize(patterns)
          @patterns = patterns.map { |pattern| pattern.gsub(/[\[\]]/) { |bracket| "\\#{bracket}" } }
        end

        # @return [Array<Integer>] the matching descriptors of this process
        # @raise [SystemCallError] /proc cannot be read
        def numbers
          return [] if @patterns.empty?

          Sys.descriptors.map { |row| Descriptor.new(row) }.select { |one| match?(one) }.map(&:number)
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
