# frozen_string_literal: true

require "pando/config/suggestion"

module Pando
  class Config
    # What the values of a setting look like. One type reads both what a
    # config file gives (a Ruby value) and what a flag or an environment
    # variable gives (a String), and can describe and write such a value.
    #
    # A subclass implements #cast and #expects.
    #
    # @api private
    class Type
      # The value does not fit. Whoever asked adds where it was written.
      class Invalid < StandardError; end

      # @param value [Object] as written by the user
      # @param options [Hash{Symbol => Object}] the setting's options, already read
      # @return [Object] the value the server works with
      # @raise [Invalid]
      def cast(_value, **_options)
        raise NotImplementedError
      end

      # @return [String] what a right value is, to end "must be ..."
      def expects
        raise NotImplementedError
      end

      # @return [Boolean] whether the setting may be given by its options alone
      def optional?
        false
      end

      # @param value [Object] a value that #cast returned
      # @return [String] the value as it would be written in a config file
      def write(value)
        value.inspect
      end

      # @param value [Object] a value that #cast returned
      # @return [Object] the same, made of what JSON knows
      def export(value)
        value
      end

      # @param value [Object] a value that #cast returned
      # @return [String] the same as a flag would give it: #cast reads it again
      def text(value)
        [*export(value)].join(",")
      end

      private

      def invalid(value, hint = "")
        raise Invalid, "must be #{expects}, but is #{value.inspect}.#{hint}"
      end
    end
  end
end
