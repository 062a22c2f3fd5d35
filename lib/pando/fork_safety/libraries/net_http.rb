# frozen_string_literal: true

module Pando
  module ForkSafety
    module Libraries
      # Net::HTTP connections that a child has inherited.
      #
      # @api private
      module NetHTTP
        # Drops the connection without telling the server. Otherwise TLS would end the session, which the parent still
        # uses. The next request opens another connection.
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
