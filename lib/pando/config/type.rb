# frozen_string_literal: true

require "pando/suggestion"

module Pando
  class Config
    # Describes the values of a setting. A type reads both Ruby values, from a
    # config file, and Strings, from a flag or an environment variable. It can
    # also describe and write its values.
    #
    # A subclass implements #cast and #expects.
    #
    # @api private
    class Type
      # The value does not fit. The caller adds where it was written.
      class Invalid < StandardError; end

      # @param value [Object] as written by the user
      # @param options [Hash{Symbol => Object}] the setting's options, already read
      # @return [Object] the value that the server works with
      # @raise [Invalid]
      def cast(_value, **_options) = raise NotImplementedError

      # @return [String] what a correct value is, after "must be"
      def expects = raise NotImplementedError

      # @return [Boolean] whether the setting may have options without a value
      def optional? = false

      # @param value [Object] a value that #cast returned
      # @return [String] the value as a config file writes it
      def write(value) = value.inspect

      # @param value [Object] a value that #cast returned
      # @return [Object] the value for JSON
      def export(value) = value

      # @param value [Object] a value that #cast returned
      # @return [String] the value as a flag writes it; #cast can read it again
      def text(value) = [*export(value)].join(",")

      private

      def invalid(value, hint = "")
        raise Invalid, "must be #{expects}, but is #{value.inspect}.#{hint}"
      end
    end
  end
end
