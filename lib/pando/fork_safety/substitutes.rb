# frozen_string_literal: true

require "socket"

module Pando
  module ForkSafety
    # The files that replace the one beneath an IO: /dev/null, and for sockets one
    # whose peer has hung up. (On /dev/null, a socket's own calls would fail with
    # ENOTSOCK, which no client takes for a lost connection.) They are open only
    # during one replace_all; the IOs hold copies.
    #
    # @api private
    class Substitutes
      # @return [IO]
      attr_reader :null, :hung_up

      # @yieldparam substitutes [Substitutes]
      # @return [Object] what the block returns
      def self.open
        substitutes = new
        yield substitutes
      ensure
        substitutes&.close
      end

      def initialize
        @null = File.open(File::NULL, "r+")
        @hung_up, peer = UNIXSocket.pair
        peer.close
      end

      # @param number [Integer] a descriptor's
      # @return [Boolean]
      def include?(number) = [@null, @hung_up].any? { |io| io.fileno == number }

      # @return [nil]
      def close
        @null.close
        @hung_up.close
      end
    end
  end
end
