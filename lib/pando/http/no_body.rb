# frozen_string_literal: true

module Pando
  module HTTP
    # `rack.input` of a request without a body. It has no state, so that one
    # frozen object serves all requests.
    class NoBody
      # @return [String, nil]
      def read(length = nil, buffer = nil)
        raise ArgumentError, "negative length #{length} given" if length&.negative?

        buffer&.clear
        length.nil? || length.zero? ? (buffer || +"") : nil
      end

      # @return [nil]
      def gets(*) = nil

      def getc = nil
      def getbyte = nil

      # @return [self, Enumerator]
      def each(*) = block_given? ? self : to_enum

      alias each_line each

      # @return [Integer]
      def rewind = 0

      def seek(*) = 0
      def pos = 0
      def size = 0
      def eof? = true
      def close = nil
      def closed? = false
      def binmode = self
      def external_encoding = Encoding::BINARY
      def sync = true

      alias tell pos
      alias length size

      # The only one.
      NONE = new.freeze
      private_class_method :new
    end
  end
end
