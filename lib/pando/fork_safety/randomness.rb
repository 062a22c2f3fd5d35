# frozen_string_literal: true

module Pando
  module ForkSafety
    # Makes sure that siblings do not draw the same numbers. A Random object of the
    # app itself is left alone: its copies draw the same numbers, as with any fork.
    #
    # @api private
    module Randomness
      # Bytes of new entropy for OpenSSL: the strength of its default generator.
      SEED_BYTES = 32

      # Gives Kernel#rand and Random.rand a new seed. SecureRandom reads from the
      # kernel and has no state. OpenSSL notices a fork only by the changed pid. A
      # child may get the pid of the dead process that last used its ancestor's
      # generator, and then OpenSSL notices nothing. So it gets new entropy too.
      #
      # @return [nil]
      def self.renew
        Random.srand
        ::OpenSSL::Random.seed(Random.urandom(SEED_BYTES)) if defined?(::OpenSSL::Random)
        nil
      end
    end
  end
end
