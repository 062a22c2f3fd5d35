# frozen_string_literal: true

module Pando
  module ForkSafety
    # Sees to it that siblings do not draw the same numbers. A Random object of
    # the app's own is the app's: its copies go on in step, as with any fork.
    #
    # @api private
    module Randomness
      # Bytes of new entropy for OpenSSL: the strength of its default generator.
      SEED_BYTES = 32

      # Kernel#rand and Random.rand get a new seed. SecureRandom reads from the
      # kernel and has no state. OpenSSL notices a fork by the changed pid alone,
      # which tells it nothing when a child is given the pid of the dead process
      # that had last used its ancestor's generator; so it is stirred as well.
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
