# frozen_string_literal: true

require "stringio"

module Pando
  module HTTP
    # A request body that the reactor has received: in memory, or in a file without
    # a name. What a {Spool} is in direct mode, and its interface.
    #
    # @api private
    class ReceivedBody
      # @return [StringIO, File] at its beginning
      attr_reader :input
      # @return [Integer] bytes
      attr_reader :size

      # @param string [String]
      def self.in_memory(string)
        new(StringIO.new(string).binmode, string.bytesize)
      end

      # @param input [StringIO, File]
      # @param size [Integer]
      def initialize(input, size)
        @input = input
        @size = size
      end

      # Frees the file.
      def close
        @input.close if @input.is_a?(File)
      end
    end
  end
end
