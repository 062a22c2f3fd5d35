# frozen_string_literal: true

module Pando
  module ForkSafety
    module Libraries
      # Connections of the standard library's Net::HTTP that a child has inherited.
      #
      # @api private
      module NetHTTP
        # Lets go of the connection without a word to the server, which a TLS session would otherwise be told has ended:
        # the parent goes on with it. The next request opens another one.
        #
        # @param http [Net::HTTP, nil]
        # @return [nil]
        def self.forget(http)
          return unless http&.started?

          socket = http.instance_variable_get(:@socket)
          socket.io.to_io.close if socket
          http.instance_variable_set(:@socket, nil)
          http.instance_variable_set(:@started, false)
          nil
        end
      end
    end
  end
end
