# frozen_string_literal: true

module Pando
  module HTTP
    # How many requests a worker may have at once. Read in the monitor, which makes a lane for each, and in the worker.
    module Threads
      # With `threads :auto`.
      MOST = 16
      # The same on a Ruby that does not say which thread has the interpreter lock (before 3.2).
      BLIND = 5

      # @param config [Config]
      # @return [Integer]
      def self.count(config)
        return config.threads unless config.threads == :auto

        RUBY_VERSION < "3.2" ? BLIND : MOST
      end
    end
  end
end
